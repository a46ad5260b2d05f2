package supervisor

import (
	"context"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/store"
)

// Messages of the ownership actor: run → ownership and back.
type (
	acquire struct{}
	// acquired answers acquire; the lease fences every durable write.
	acquired struct{ lease *store.Lease }
	// refused answers acquire when another owner is alive or cannot be judged.
	refused struct{ err error }
	release struct{}
	// released answers release, also when there was nothing to release.
	released struct{ err error }
)

// ownership holds the owner.json of one run. It acquires on demand and releases
// when told, and at its end if the run could not tell it any more.
type ownership struct {
	work    *background
	dir     store.RunDir
	session string
	held    held
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
		o.work.do(ctx, func(work context.Context) any {
			lease, err := o.dir.Acquire(work, o.session)
			if err != nil {
				return refused{err}
			}
			if !o.held.put(lease) {
				_, err := lease.Release()
				return released{err}
			}
			return acquired{lease}
		})
	case acquired:
		ctx.Send(ctx.Parent(), m)
	case refused:
		ctx.Send(ctx.Parent(), m)
	case release:
		lease := o.held.take(false)
		if lease == nil {
			ctx.Send(ctx.Parent(), released{})
			return
		}
		o.work.do(ctx, func(context.Context) any {
			_, err := lease.Release()
			return released{err}
		})
	case released:
		ctx.Send(ctx.Parent(), m)
	case workPanicked:
		panic(m.reason)
	case *actor.Stopping, *actor.Restarting:
		// The orderly way is release. This is the way out after a crash of the
		// run's actor: an owner file left behind would lock the run until this
		// process ends.
		if lease := o.held.take(true); lease != nil {
			_, _ = lease.Release()
		}
	}
}
