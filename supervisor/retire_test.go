package supervisor

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// brief is a run that answers its calls at once and has nothing to give up.
type brief struct{}

type briefCall struct{ caller *actor.PID }

func (brief) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case briefCall:
		ctx.Send(ctx.Parent(), callEnded{caller: m.caller, answer: reply{value: ctx.Self().Id}})
	case retire:
		ctx.Stop(ctx.Self())
	}
}

// A run retires whenever no call is on it, and the next call may come at any moment
// of that; its name is then that of a run which is just ending.
func TestACallThatComesWhileItsRunRetiresIsAnsweredByTheNextOne(t *testing.T) {
	t.Parallel()
	system, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := system.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	const runs, callers, calls = 3, 3, 300
	var wg sync.WaitGroup
	for run := range runs {
		id := fmt.Sprint("brief-", run)
		for range callers {
			wg.Go(func() {
				for range calls {
					value, err := system.ask(context.Background(), nil, func(caller *actor.PID) prepare {
						return func(context.Context) (destination, error) {
							return destination{run: runKey{"root", id}, message: briefCall{caller}, spawn: func() actor.Actor { return brief{} }}, nil
						}
					})
					if err != nil || value != "registry/run-"+id {
						t.Errorf("got %v, %v", value, err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}
