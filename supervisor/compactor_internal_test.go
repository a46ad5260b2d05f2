package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
	"pilothouse/supervisor/compaction"
)

// desk stands in for the run of a compaction actor and keeps its answers.
type desk struct {
	t       *testing.T
	system  *actor.ActorSystem
	pid     *actor.PID // of the compaction actor
	answers chan compactionAnswer
	callers int
}

func newDesk(t *testing.T, patience time.Duration) *desk {
	t.Helper()
	d := &desk{t: t, system: actor.NewActorSystem(), answers: make(chan compactionAnswer, 16)}
	work := newBackground(nil)
	child := make(chan *actor.PID, 1)
	run, err := d.system.Root.SpawnNamed(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *actor.Started:
			child <- c.Spawn(actor.PropsFromProducer(func() actor.Actor {
				return &compactor{work: work, patience: patience, sessions: map[string]*sessionCompactions{}}
			}))
		case compactionAnswer:
			d.answers <- m
		}
	}), "run")
	if err != nil {
		t.Fatal(err)
	}
	d.pid = <-child
	t.Cleanup(func() {
		if err := d.system.Root.StopFuture(run).Wait(); err != nil {
			t.Error(err)
		}
		work.wait()
		d.system.Shutdown()
	})
	return d
}

// ask puts a question and returns who asks.
func (d *desk) ask(session string, question any) *actor.PID {
	d.callers++
	caller := actor.NewPID("test", fmt.Sprint(d.callers))
	d.system.Root.Send(d.pid, compactionCall{caller, session, question})
	return caller
}

// hears is the next answer, which has to be for the caller.
func (d *desk) hears(caller *actor.PID) compactionAnswer {
	d.t.Helper()
	answer := <-d.answers
	if !answer.caller.Equal(caller) {
		d.t.Fatalf("the answer is for %s: %+v, %v", answer.caller, answer.reply.Compaction, answer.err)
	}
	return answer
}

func (a compactionAnswer) decision() string {
	if a.err != nil {
		return a.err.Error()
	}
	return strings.TrimSpace(a.reply.Compaction.Action + " " + a.reply.Compaction.Reason)
}

func now(t *testing.T, earlier ...string) compactNow {
	t.Helper()
	entries := earlier
	for i := range 4 {
		entries = append(entries, fmt.Sprintf(`{"id":"u%d","type":"message","message":{"role":"user","content":"part %d of it"}}`, i, i),
			fmt.Sprintf(`{"id":"a%d","type":"message","message":{"role":"assistant","content":[]}}`, i))
	}
	r, err := compaction.ParseRequest([]byte(`{"branchEntries":[` + strings.Join(entries, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return compactNow{request: r, phase: compaction.Planning, config: store.DefaultCompactionConfig()}
}

func TestACompactionWaitsForTheOneBeforeItInItsSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Hour)
	first := d.ask("s1", now(t))
	if got := d.hears(first); got.decision() != "compaction" || got.busy != "s1" {
		t.Fatalf("the first: %s, busy %q", got.decision(), got.busy)
	}
	second := d.ask("s1", now(t)) // Pi has not said yet what became of the first
	other := d.ask("s2", now(t))
	if got := d.hears(other); got.decision() != "compaction" {
		t.Errorf("another session: %s", got.decision())
	}
	d.hears(d.ask("s2", compactionOver{done: true}))
	failed := d.ask("s1", compactionOver{failure: "429"})
	if got := d.hears(failed); len(got.reply.Actions) != 1 || got.busy != "s1" {
		t.Errorf("the report: %+v, busy %q", got.reply, got.busy)
	}
	if got := d.hears(second); got.decision() != "compaction" {
		t.Errorf("the second, after the first has failed: %s", got.decision())
	}

	third, fourth := d.ask("s1", now(t)), d.ask("s1", now(t))
	knowing := d.ask("s1", now(t, `{"id":"c","type":"compaction","summary":"s","firstKeptEntryId":"u0"}`)) // came faster than the report
	done := d.ask("s1", compactionOver{done: true})
	for _, caller := range []*actor.PID{third, fourth} {
		if got := d.hears(caller); got.decision() != "cancel already compacted" {
			t.Errorf("after one that was done: %s", got.decision())
		}
	}
	if got := d.hears(done); got.busy != "s1" {
		t.Errorf("busy with %q", got.busy)
	}
	if got := d.hears(knowing); got.decision() != "compaction" {
		t.Errorf("one that knows of what was done: %s", got.decision())
	}
	if got := d.hears(d.ask("s1", compactionOver{done: true})); got.busy != "" {
		t.Errorf("busy with %q", got.busy)
	}
	fresh := d.ask("s1", now(t))
	if got := d.hears(fresh); got.decision() != "compaction" {
		t.Errorf("the next: %s", got.decision())
	}
}

func TestACompactionThatIsNeverReportedDoesNotBlockTheNextForEver(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Millisecond)
	for range 3 {
		if got := d.hears(d.ask("s1", now(t))); got.decision() != "compaction" {
			t.Errorf("decided %s", got.decision())
		}
	}
}

func TestWhoDoesNotWaitForACompactionAnyMoreIsLetGo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, time.Hour)
	d.hears(d.ask("s1", now(t)))
	waiting := d.ask("s1", now(t))
	d.system.Root.Send(d.pid, cancelCall{waiting, "the session went away"})
	if got := d.hears(waiting); got.err == nil || !strings.Contains(got.err.Error(), "the session went away") {
		t.Errorf("answered with %s", got.decision())
	}
	over := d.ask("s1", compactionOver{failure: "aborted", aborted: true})
	if got := d.hears(over); got.busy != "" {
		t.Errorf("busy with %q", got.busy)
	}
}

func TestASessionDoesWithoutACompactionActorThatPanics(t *testing.T) {
	t.Parallel()
	workdir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", workdir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	f := &faults{[]*fault{{kind: "compaction", at: 2}}} // Started is the first
	system, err := New(Options{receivers: []actor.ReceiverMiddleware{f.receive}})
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
	session := Session{ID: "s1", Workdir: workdir}
	if _, err := system.Plans(t.Context(), session, PlansAction{Action: "start-run", Topic: "Bake", Skill: "plan-normal", RequestText: "bake"}); err != nil {
		t.Fatal(err)
	}
	event := json.RawMessage(`{"branchEntries":[]}`)
	if _, err := system.Hook(t.Context(), session, "session_before_compact", event); err == nil || !strings.Contains(err.Error(), "the compaction failed inside") {
		t.Errorf("the first: %v", err)
	}
	var lost *LostRunError
	if errors.As(err, &lost) {
		t.Error("the run went with it")
	}
	reply, err := system.Hook(t.Context(), session, "session_before_compact", event)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&CompactionReply{Action: "cancel", Reason: "nothing to compact"}, reply.Compaction); diff != "" {
		t.Errorf("the second (-want +got):\n%s", diff)
	}
}
