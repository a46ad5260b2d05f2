package supervisor

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes"
)

// background runs blocking work for actors. It owns the goroutines: wait
// returns when all have ended.
type background struct {
	turns  *lanes.Turns
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func newBackground(turns *lanes.Turns) *background {
	ctx, cancel := context.WithCancel(context.Background())
	return &background{turns: turns, ctx: ctx, cancel: cancel}
}

// do runs work when it has a turn, and sends its result, unless it is nil, to the actor
// that asked, with the message headers of the message at hand, so that a trace goes on.
// A panic in work arrives as workPanicked and is raised again inside the actor, where
// its supervisor deals with it.
func (b *background) do(ctx actor.Context, work func(context.Context) any) {
	b.doInTurn(ctx, lanes.UnderWay, work)
}

// begin does the same with work that begins something big: what is under way goes first.
func (b *background) begin(ctx actor.Context, work func(context.Context) any) {
	b.doInTurn(ctx, lanes.Beginning, work)
}

func (b *background) doInTurn(ctx actor.Context, urgency lanes.Urgency, work func(context.Context) any) {
	b.await(ctx, func(c context.Context) any {
		defer b.turns.Take(c, urgency)()
		return work(c)
	})
}

// await does the same with what only waits, and takes no turn.
func (b *background) await(ctx actor.Context, work func(context.Context) any) {
	self, root := ctx.Self(), ctx.ActorSystem().Root
	var header map[string]string
	if h := ctx.MessageHeader(); h != nil {
		header = h.ToMap()
	}
	b.wg.Go(func() {
		var message any
		defer func() {
			if message != nil {
				root.Send(self, &actor.MessageEnvelope{Header: header, Message: message})
			}
		}()
		defer func() {
			if reason := recover(); reason != nil {
				message = workPanicked{fmt.Sprintf("%v\n%s", reason, debug.Stack())}
			}
		}()
		message = work(b.ctx)
	})
}

// wait cancels what still runs and returns when it has ended.
func (b *background) wait() {
	b.cancel()
	b.wg.Wait()
}

// workPanicked stands for work that panicked.
type workPanicked struct{ reason string }
