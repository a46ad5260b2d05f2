package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"pilothouse/lanes/pijson"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// driverVariable makes the test binary a driver; its value is an assignment.
const driverVariable = "PILOTHOUSE_CRASH_DRIVER"

// assignment is what a driver is told.
type assignment struct {
	Workdir  string
	Children string // where children are noted for the sweep
	Scratch  string // for what the stub prints
	Stub     string
	Marker   string // of all children
	Seed     uint64
	// Orderly drivers finish what others have left, and end by themselves.
	Orderly bool
}

// slots is how many runs a driver works on at once, each with two workers.
const slots = 2

// driver is the process that is to be killed.
type driver struct {
	assignment
	*notes
	system *supervisor.System
	prints prints
}

func drive() int {
	var d driver
	if err := json.Unmarshal([]byte(os.Getenv(driverVariable)), &d.assignment); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	syscall.CloseOnExec(pipeDescriptor)
	d.notes = &notes{out: os.NewFile(pipeDescriptor, "notes")}
	d.prints = prints{dir: d.Scratch}
	var err error
	d.system, err = supervisor.New(supervisor.Options{
		ChildrenDir: d.Children, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		d.faultf("open the system: %v", err)
		return 1
	}
	d.write(note{Kind: ready})
	if d.Orderly {
		d.finish()
	} else {
		d.work()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := d.system.Close(ctx); err != nil {
		d.faultf("close the system: %v", err)
		return 1
	}
	return 0
}

// pipeDescriptor is where notes go.
const pipeDescriptor = 3

func (d *driver) faultf(format string, args ...any) {
	d.write(note{Kind: fault, Text: fmt.Sprintf(format, args...)})
}

// session is a session whose pi is the stub with these switches.
func (d *driver) session(switches ...string) supervisor.Session {
	words := append([]string{d.Stub, "--marker", d.Marker}, switches...)
	return supervisor.Session{ID: "driver", Workdir: d.Workdir, Pi: strings.Join(words, " "), Environ: []string{"PATH=" + os.Getenv("PATH")}}
}

// work goes on until the driver is killed.
func (d *driver) work() {
	open, err := d.openRuns()
	if err != nil {
		d.faultf("list the runs: %v", err)
		return
	}
	var workers sync.WaitGroup
	for slot := range slots {
		w := &worker{driver: d, random: rand.New(rand.NewPCG(d.Seed, uint64(slot))), handOver: make(chan store.RunDir)}
		if slot < len(open) {
			w.run = open[slot]
		}
		workers.Go(func() { w.workflow() })
		beside := &worker{driver: d, random: rand.New(rand.NewPCG(d.Seed, uint64(slots+slot)))}
		workers.Go(func() { beside.beside(w.handOver) })
	}
	workers.Wait() // a worker only ends at a fault
}

// openRuns are the runs that have been started and are not completed, newest first.
func (d *driver) openRuns() ([]store.RunDir, error) {
	root, err := store.Find(context.Background(), d.Workdir)
	if err != nil {
		return nil, err
	}
	runs, err := root.Runs()
	if err != nil {
		return nil, err
	}
	var open []store.RunDir
	for _, run := range slices.Backward(runs) {
		cp, err := run.Dir.LoadCheckpoint()
		switch {
		case errors.Is(err, store.ErrNoCheckpoint): // killed before it was started
		case err != nil:
			return nil, err
		case cp.Phase != store.PhaseCompleted && cp.Plan != nil:
			open = append(open, run.Dir)
		}
	}
	return open, nil
}

// finish takes over every run and brings to an end what was begun: rounds are
// resumed until no lane is missing, the pending question is answered.
func (d *driver) finish() {
	open, err := d.openRuns()
	if err != nil {
		d.faultf("list the runs: %v", err)
		return
	}
	for i, run := range open {
		w := &worker{driver: d, random: rand.New(rand.NewPCG(d.Seed, uint64(i))), run: run}
		w.decide()
		w.question(true)
		rounds, err := brokenOff(run)
		if err != nil {
			d.faultf("read the rounds: %v", err)
			return
		}
		for _, round := range rounds {
			w.resume(round, calm)
		}
	}
	if len(open) > 0 {
		(&worker{driver: d, random: rand.New(rand.NewPCG(d.Seed, 99)), run: open[0]}).sweep()
	}
}

// brokenOff are the rounds of a run with lanes that a killed process has left, as
// far as they can be resumed: the checkpoint knows them.
func brokenOff(run store.RunDir) ([]store.RoundRecord, error) {
	cp, err := run.LoadCheckpoint()
	if err != nil {
		return nil, err
	}
	records, err := run.RoundDir().Rounds()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(records, func(record store.RoundRecord) bool {
		return cp.Round(record.RoundID) == nil || !slices.ContainsFunc(record.Lanes, left)
	}), nil
}

func left(lane store.LaneRecord) bool {
	return !lane.Status.Terminal() || lane.Error.Class == string(pijson.ClassOrchestratorLost)
}

// patience is for things that must happen; nothing waits this long when all is well.
const patience = time.Minute
