package supervisor

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"
)

// mailboxes collects the depth of the mailboxes of living actors by their kind. It
// counts when it is asked, so that a message costs nothing more.
type mailboxes struct {
	depth *prometheus.Desc

	mu   sync.Mutex
	live map[actor.Mailbox]string // kind by mailbox
}

func newMailboxes() *mailboxes {
	return &mailboxes{
		depth: prometheus.NewDesc("pilothouse_mailbox_messages", "Messages that wait in the mailboxes of actors.", []string{"actor"}, nil),
		live:  map[actor.Mailbox]string{},
	}
}

// Describe implements prometheus.Collector.
func (b *mailboxes) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- b.depth }

// Collect implements prometheus.Collector.
func (b *mailboxes) Collect(collected chan<- prometheus.Metric) {
	sums := map[string]int{}
	b.mu.Lock()
	for mailbox, kind := range b.live {
		sums[kind] += mailbox.UserMessageCount()
	}
	b.mu.Unlock()
	for _, kind := range actorNames {
		collected <- prometheus.MustNewConstMetric(b.depth, prometheus.GaugeValue, float64(sums[kind]), kind)
	}
}

// watch lets the actor that is spawned of props be counted until it has stopped.
// forget is for when it could not be spawned.
func (b *mailboxes) watch(props *actor.Props, kind string) (watched *actor.Props, forget func()) {
	var mailbox actor.Mailbox
	forget = func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.live, mailbox)
	}
	return props.Clone(
		actor.WithMailbox(func() actor.Mailbox {
			mailbox = actor.Unbounded()()
			b.mu.Lock()
			defer b.mu.Unlock()
			b.live[mailbox] = kind
			return mailbox
		}),
		actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
				next(c, envelope)
				if _, stopped := envelope.Message.(*actor.Stopped); stopped {
					forget()
				}
			}
		}),
	), forget
}
