package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/store"
)

// Messages of the ownership actor: run → ownership and back.
type (
	acquire struct{ session string }
	// acquired answers acquire; the lease fences every durable write.
	acquired struct{ lease *store.Lease }
	// refused answers acquire when another owner is alive or cannot be judged.
	refused struct{ err error }
	release struct{}
	// released answers release, also when there was nothing to release.
	released struct{ err error }
	// lost comes unasked: somebody else has the run now.
	lost struct {
		lease *store.Lease
		err   error
	}
)

// ownerCheck is how often owner.json is looked at while a run is held. A run whose
// lanes think for an hour writes nothing for an hour; it should not work on for two
// owners any longer than this.
const ownerCheck = 3 * time.Second

// ownership holds the owner.json of one run. It acquires on demand, watches what it
// holds and releases when told, and at its end if the run could not tell it any more.
type ownership struct {
	work    *background
	dir     store.RunDir
	check   time.Duration // between two looks at owner.json
	held    held
	unwatch context.CancelFunc // ends the watch, nil while there is none

	giveUp    context.CancelFunc // of the acquisition under way, nil while there is none
	releasing bool               // release came before that was over
}

// held is the lease between the goroutine that acquires it and the actor. When the
// actor ends before it hears of a lease, the goroutine gives it back.
type held struct {
	mu    sync.Mutex
	lease *store.Lease
	over  bool
}

// put keeps a lease; it is false when nobody wants it any more.
func (h *held) put(lease *store.Lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	h.lease = lease
	return true
}

// take returns the lease, nil without one, and refuses further ones when it is over.
func (h *held) take(over bool) *store.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	lease := h.lease
	h.lease, h.over = nil, h.over || over
	return lease
}

// Receive implements actor.Actor.
func (o *ownership) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case acquire:
		acquiring, giveUp := context.WithCancel(o.work.ctx)
		o.giveUp = giveUp
		o.work.do(ctx, func(context.Context) any {
			lease, err := o.dir.Acquire(acquiring, m.session)
			if err != nil {
				return refused{err}
			}
			if !o.held.put(lease) {
				_, _ = lease.Release() // the actor is gone; another may have its name by now
				return nil
			}
			return acquired{lease}
		})
	case acquired:
		if o.acquisitionOver(ctx) {
			return
		}
		o.watch(ctx, m.lease)
		ctx.Send(ctx.Parent(), m)
	case refused:
		if o.acquisitionOver(ctx) {
			return
		}
		ctx.Send(ctx.Parent(), m)
	case lost:
		ctx.Send(ctx.Parent(), m)
	case release:
		if o.giveUp != nil {
			o.giveUp()
			o.releasing = true
			return
		}
		o.release(ctx)
	case released:
		ctx.Send(ctx.Parent(), m)
	case workPanicked:
		panic(m.reason)
	case *actor.Stopping, *actor.Restarting:
		// The orderly way is release. This is the way out after a crash of the
		// run's actor: an owner file left behind would lock the run until this
		// process ends.
		o.endWatch()
		if o.giveUp != nil {
			o.giveUp()
		}
		if lease := o.held.take(true); lease != nil {
			_, _ = lease.Release()
		}
	}
}

// acquisitionOver is true when the run has been told to be released meanwhile. It
// lives on until then: what is still under way would give up the run of its
// successor, which has its name and, in the same session, its lease.
func (o *ownership) acquisitionOver(ctx actor.Context) bool {
	o.giveUp()
	o.giveUp = nil
	if o.releasing {
		o.release(ctx)
	}
	return o.releasing
}

func (o *ownership) release(ctx actor.Context) {
	o.endWatch()
	lease := o.held.take(false)
	if lease == nil {
		ctx.Send(ctx.Parent(), released{})
		return
	}
	o.work.do(ctx, func(context.Context) any {
		_, err := lease.Release()
		return released{err}
	})
}

// watch looks at owner.json until the lease is lost or given back.
func (o *ownership) watch(ctx actor.Context, lease *store.Lease) {
	o.endWatch()
	watching, end := context.WithCancel(o.work.ctx)
	o.unwatch = end
	o.work.await(ctx, func(context.Context) any {
		if err := untilLost(watching, lease, o.check); err != nil {
			return lost{lease, err}
		}
		return nil
	})
}

func (o *ownership) endWatch() {
	if o.unwatch != nil {
		o.unwatch()
		o.unwatch = nil
	}
}

// untilLost returns the *store.LostOwnerError of a lease that does not count any more,
// or nil when ctx ends first. A look that fails otherwise proves nothing; the next
// write tells what is wrong.
func untilLost(ctx context.Context, lease *store.Lease, every time.Duration) error {
	due := time.NewTicker(every) // of the monotonic clock
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-due.C:
		}
		var lost *store.LostOwnerError
		if err := lease.Assert(); errors.As(err, &lost) {
			return err
		}
	}
}
