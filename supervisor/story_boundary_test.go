package supervisor

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/actors"
	"pilothouse/lanes"
)

// boundaries are the places of a story where its process can be killed: every message
// that any actor of the tree receives, every request of a session with its reply, and
// every look at the clock, which comes between the files that one change writes. Only
// progress is none, which is told as often as there is time for it.
type boundaries struct {
	at   string       // where this process is killed, "" for nowhere
	tell func(string) // hears of each, nil unless they are listed

	mu   sync.Mutex
	seen map[string]int
}

// cross is the way over a boundary. Its name has how often this process has been at
// such a one.
func (b *boundaries) cross(place string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[string]int{}
	}
	b.seen[place]++
	name := fmt.Sprintf("%s #%d", place, b.seen[place])
	if b.tell != nil {
		b.tell(name)
	}
	if name == b.at {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {} // nothing is done between here and the end
	}
}

// now is the clock of the system.
func (b *boundaries) now() time.Time {
	b.cross("clock")
	return time.Now()
}

// receive is the boundary before each message.
func (b *boundaries) receive(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		switch m := envelope.Message.(type) {
		case lanes.Progress, actors.LaneProgress:
		case commit:
			b.crossMessage(c, fmt.Sprintf("%T of %T", m, m.change))
		case committed:
			b.crossMessage(c, fmt.Sprintf("%T of %T", m, m.change))
		default:
			b.crossMessage(c, fmt.Sprintf("%T", m))
		}
		next(c, envelope)
	}
}

func (b *boundaries) crossMessage(c actor.ReceiverContext, message string) {
	name, _, _ := strings.Cut(path.Base(c.Self().Id), "-")
	if strings.HasPrefix(name, "$") { // the library's names for those that have none
		name = "call"
	}
	b.cross(name + " " + strings.ReplaceAll(message, "supervisor.", ""))
}
