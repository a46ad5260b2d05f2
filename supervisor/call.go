package supervisor

import (
	"github.com/asynkron/protoactor-go/actor"
)

// reply ends a call.
type reply struct {
	value any
	err   error
}

// call is the actor at the edge of the tree: it stands for one caller outside,
// passes events to its watch and hands over the reply. Its mailbox decouples a
// slow watch from the run.
type call struct {
	watch Watch
	done  chan<- reply
}

// Receive implements actor.Actor.
func (c *call) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage:
	case reply:
		c.done <- m
		ctx.Stop(ctx.Self())
	default:
		if c.watch != nil {
			c.watch(m)
		}
	}
}
