package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/store"
)

// crowd asks the checkpoint actor of a run for many changes at once and looks at the
// disk at every acknowledgement.
type crowd struct {
	system *System
	run    store.RunDir
	pid    *actor.PID
	acks   chan acknowledgement
}

// acknowledgement is one answer of the checkpoint actor, with what is on disk when it comes.
type acknowledgement struct {
	committed
	onDisk store.Checkpoint
	syncs  int64
}

// count is a change that is seen in the sum of all of them.
type count struct{}

func (count) store(*files) error { return nil }

func (count) reduce(time.Time) store.Change {
	return store.ExecutionProgressed(store.Progress{Usage: store.TokenUsage{InToks: 1}})
}

func newCrowd(t testing.TB, size int) *crowd {
	t.Helper()
	workdir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", workdir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	system, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := system.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	root, _, err := store.Ensure(t.Context(), workdir)
	if err != nil {
		t.Fatal(err)
	}
	started, _, err := store.StartRun(root, store.StartRunRequest{Topic: "x", Skill: "x", RequestText: "x"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	run, err := root.Run(started.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.CreateCheckpoint(time.Now()); err != nil {
		t.Fatal(err)
	}
	_, err = run.MutateCheckpoint(nil, nil, time.Now(), func(cp *store.Checkpoint) error {
		cp.Phase, cp.NextAction = store.PhaseExecuting, store.ActionExecuteItems
		cp.Execution = &store.Execution{DoneVCIDs: []string{}, ImplStatus: map[string]string{}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := run.Acquire(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := lease.Release(); err != nil && !errors.Is(err, store.ErrNoRun) {
			t.Error(err)
		}
	})
	c := &crowd{system: system, run: run, acks: make(chan acknowledgement, size)}
	spawned := make(chan *actor.PID, 1)
	parent := system.actors.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			f := newFiles(&run, run.RoundDir(), time.Now, slog.New(slog.DiscardHandler))
			spawned <- ctx.Spawn(actor.PropsFromProducer(func() actor.Actor {
				return &checkpoint{work: system.work, metrics: system.metrics, files: f, lease: lease}
			}))
		case committed:
			seen, _ := run.LoadCheckpoint() // a run that is gone has none
			c.acks <- acknowledgement{m, seen, store.Syncs()}
		}
	}))
	t.Cleanup(func() { _ = system.actors.Root.StopFuture(parent).Wait() })
	c.pid = <-spawned
	return c
}

// ask sends n changes at once and waits for the answers.
func (c *crowd) ask(n int) []acknowledgement {
	for range n {
		c.system.actors.Root.Send(c.pid, commit{count{}})
	}
	all := make([]acknowledgement, n)
	for i := range all {
		all[i] = <-c.acks
	}
	return all
}

// It counts the syncs of the whole process, so no other test runs beside it.
func TestOfManyChangesAtOnceNoneIsAcknowledgedBeforeItIsDurableAndNoneIsLost(t *testing.T) {
	const n = 300
	c := newCrowd(t, n)
	before, err := c.run.LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	began := store.Syncs()
	for i, ack := range c.ask(n) {
		if ack.err != nil || ack.checkpoint == nil {
			t.Fatalf("change %d: %v", i, ack.err)
		}
		// On disk is what the acknowledgement says, this change and all before it ...
		if ack.onDisk.Revision < ack.checkpoint.Revision || ack.onDisk.Execution.Usage.InToks < ack.checkpoint.Execution.Usage.InToks || ack.checkpoint.Execution.Usage.InToks <= i {
			t.Errorf("change %d: acknowledged at revision %d with %d changes, on disk is revision %d with %d",
				i, ack.checkpoint.Revision, ack.checkpoint.Execution.Usage.InToks, ack.onDisk.Revision, ack.onDisk.Execution.Usage.InToks)
		}
		// ... and each revision has been synced, the file and its directory.
		if groups := int64(ack.checkpoint.Revision - before.Revision); ack.syncs-began < 2*groups {
			t.Errorf("change %d: %d syncs for %d writes", i, ack.syncs-began, groups)
		}
	}
	after, err := c.run.LoadCheckpoint()
	if err != nil || after.Execution.Usage.InToks != n || after.Revision-before.Revision >= n {
		t.Errorf("%d of %d changes are on disk after %d writes (%v)", after.Execution.Usage.InToks, n, after.Revision-before.Revision, err)
	}
}

func TestOfManyChangesThatCannotBeWrittenNoneIsAcknowledged(t *testing.T) {
	t.Parallel()
	const n = 50
	c := newCrowd(t, n)
	if out, err := exec.Command("rm", "-r", c.run.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i, ack := range c.ask(n) {
		if ack.err == nil || ack.checkpoint != nil {
			t.Errorf("change %d was acknowledged", i)
		}
	}
}

// BenchmarkGroupCommit sends 1,000 changes at once to the checkpoint actor. The bar
// is a tenth of the syncs that one for each change would be.
//
//	x-fewer-syncs  changes over syncs, of files and directories
//	changes/s      acknowledged
func BenchmarkGroupCommit(b *testing.B) {
	const n = 1000
	c := newCrowd(b, n)
	var syncs int64
	for b.Loop() {
		began := store.Syncs()
		for _, ack := range c.ask(n) {
			if ack.err != nil {
				b.Fatal(ack.err)
			}
		}
		syncs += store.Syncs() - began
	}
	b.ReportMetric(float64(n*b.N)/float64(syncs), "x-fewer-syncs")
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "changes/s")
}
