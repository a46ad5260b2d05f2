package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes"
	"pilothouse/store"
)

// change is one thing that is to become durable. The checkpoint actor takes the
// changes that wait, stores what belongs beside the checkpoint, writes the
// checkpoint once for all of them, and only then acknowledges each.
type change interface {
	// store writes the files that the change brings along: an answer, a ledger
	// line, the record of a round. It runs first, so that the checkpoint never
	// refers to a file that is not there.
	store(f *files) error
	// reduce is the change of the checkpoint, nil when it stays as it is.
	reduce(now time.Time) store.Change
}

// Messages of the checkpoint actor: run → checkpoint and back.
type (
	// commit asks for a change; committed answers it, in the order of asking.
	commit    struct{ change change }
	committed struct {
		change     change
		err        error
		checkpoint *store.Checkpoint // as it is on disk; nil when the group left it alone
	}
	// fence gives the actor the lease that every write is checked against.
	fence struct{ lease *store.Lease }

	// written ends the write of a group.
	written struct{ results []committed }
)

// checkpoint is the only writer of a run's files.
type checkpoint struct {
	work    *background
	files   *files
	lease   *store.Lease
	metrics *metrics
	waiting []change
	asked   []context.Context // the traces of those that wait
	writing bool
}

// Receive implements actor.Actor.
func (c *checkpoint) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case fence:
		c.lease = m.lease
	case commit:
		c.waiting, c.asked = append(c.waiting, m.change), append(c.asked, lanes.MessageTrace(ctx))
		c.writeNext(ctx)
	case written:
		c.writing = false
		for _, result := range m.results {
			ctx.Send(ctx.Parent(), result)
		}
		c.writeNext(ctx)
	case workPanicked:
		panic(m.reason)
	}
}

// writeNext writes all that waits as one group. While it is being written, the
// next group gathers.
func (c *checkpoint) writeNext(ctx actor.Context) {
	if c.writing || len(c.waiting) == 0 {
		return
	}
	group, lease, files := c.waiting, c.lease, c.files
	activity := beginWrite(ctx, c.asked)
	c.waiting, c.asked, c.writing = nil, nil, true
	c.work.do(ctx, func(context.Context) any {
		began := time.Now()
		results := files.write(group, lease)
		c.metrics.written(results, time.Since(began), activity.SpanContext())
		endWrite(activity, results)
		return written{results}
	})
}

// files are the durable files of one run, or of an ad hoc round without one. Only
// the write at work touches them.
type files struct {
	run      *store.RunDir // nil for an ad hoc round
	rounds   store.RoundDir
	records  map[string]*store.RoundRecord // of the open rounds, by id
	occupied map[string]*store.Lease       // of open rounds without a run, by id
	now      func() time.Time
	logger   *slog.Logger
}

func newFiles(run *store.RunDir, rounds store.RoundDir, now func() time.Time, logger *slog.Logger) *files {
	return &files{
		run: run, rounds: rounds, now: now, logger: logger,
		records: map[string]*store.RoundRecord{}, occupied: map[string]*store.Lease{},
	}
}

// write makes a group of changes durable and says what became of each. A change
// that fails does not take the others with it. When the run is not ours any more
// nothing is written: what a change brings along is fenced like the checkpoint.
func (f *files) write(group []change, lease *store.Lease) []committed {
	var lost error
	if lease != nil {
		lost = lease.Assert()
	}
	results := make([]committed, len(group))
	for i, ch := range group {
		results[i] = committed{change: ch, err: lost}
		if lost == nil {
			results[i].err = ch.store(f)
		}
	}
	if f.run == nil {
		return results
	}
	var reductions []store.Change
	for i, ch := range group {
		if reduction := ch.reduce(f.now()); reduction != nil && results[i].err == nil {
			reductions = append(reductions, store.Isolate(reduction, func(err error) {
				if !errors.Is(err, store.ErrNoChange) { // it is on record already
					results[i].err = err
				}
			}))
		}
	}
	if len(reductions) == 0 {
		return results
	}
	cp, err := f.run.MutateCheckpoint(lease, nil, f.now(), reductions...)
	for i, ch := range group {
		switch {
		case err == nil:
			results[i].checkpoint = &cp
		case results[i].err == nil && ch.reduce(f.now()) != nil:
			results[i].err = err
		}
	}
	return results
}
