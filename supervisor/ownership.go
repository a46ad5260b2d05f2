package supervisor

import (
	"context"

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
	lease   *store.Lease
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
			return acquired{lease}
		})
	case acquired:
		o.lease = m.lease
		ctx.Send(ctx.Parent(), m)
	case refused:
		ctx.Send(ctx.Parent(), m)
	case release:
		lease := o.lease
		o.lease = nil
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
		if o.lease != nil {
			_, _ = o.lease.Release()
			o.lease = nil
		}
	}
}
