package lanes

import (
	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Telemetry is what the actors of a system report to for people who watch it from
// outside. The actor system carries it, so that each actor finds it without being
// handed it through every level, and two systems of one process keep theirs apart.
type Telemetry struct {
	// Metrics counts lanes; nil counts nothing.
	Metrics *Metrics
	// Tracer draws the spans of rounds, batches, lanes and attempts; nil draws none.
	Tracer trace.Tracer
}

var telemetryID = extensions.NextExtensionID()

// ExtensionID implements extensions.Extension of the actor library.
func (*Telemetry) ExtensionID() extensions.ExtensionID { return telemetryID }

// Instrument gives the actors of a system their telemetry. It has to be called
// before the first of them is started.
func Instrument(system *actor.ActorSystem, t Telemetry) { system.Extensions.Register(&t) }

// telemetryOf is the telemetry of an actor's system, with a tracer in any case.
func telemetryOf(system *actor.ActorSystem) Telemetry {
	var t Telemetry
	if registered, ok := system.Extensions.Get(telemetryID).(*Telemetry); ok {
		t = *registered
	}
	if t.Tracer == nil {
		t.Tracer = noop.Tracer{}
	}
	return t
}
