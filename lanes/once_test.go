package lanes_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes"
)

func TestAnActorThatIsToWorkOnceHearsNothingAfterARestart(t *testing.T) {
	t.Parallel()
	heard := 0
	produce := lanes.Once(func() actor.Actor { return actor.ReceiveFunc(func(actor.Context) { heard++ }) })
	produce().Receive(nil)
	produce().Receive(nil)
	if heard != 1 {
		t.Errorf("the messages of %d lives were heard, want one", heard)
	}
}
