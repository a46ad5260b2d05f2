package lanes

import (
	"cmp"
	"time"
)

// Limits bound one lane. All clocks are monotonic and start with the task, so
// a warm child that waits for its task uses none of them up. A zero field takes
// its default.
type Limits struct {
	// Lane is the time for all attempts of the lane together.
	Lane time.Duration `json:"lane,omitempty"`
	// FirstEvent is the time from the task to the child's first event.
	FirstEvent time.Duration `json:"firstEvent,omitempty"`
	// Silence is the longest gap between two events.
	Silence time.Duration `json:"silence,omitempty"`
	// Drain is how long a child may take to exit after its final answer.
	Drain time.Duration `json:"drain,omitempty"`
	// Attempts is the number of children a lane may use one after the other.
	Attempts int `json:"attempts,omitempty"`
	// RetryDelay is the first wait for a provider to recover between two
	// attempts; it doubles each time, up to a minute, and is spread by half of
	// itself either way. Children that fought for a lock wait a tenth of it.
	RetryDelay time.Duration `json:"retryDelay,omitempty"`
	// Turns is the number of assistant messages, of all attempts together, after
	// which the lane is ended.
	Turns int `json:"turns,omitempty"`
	// Tokens is the number of tokens of all attempts together, cache reads
	// included, after which the lane is ended; negative for no limit.
	Tokens int64 `json:"tokens,omitempty"`
	// Cost is the price of all attempts together, in the dollars of pi's price
	// table, after which the lane is ended; negative for no limit.
	Cost float64 `json:"cost,omitempty"`
}

// Defaults of [Limits]. Pi itself may stay silent for minutes behind a start-up
// lock (30 s, Pi fact §1) or a stalled model (5 min, Pi fact §5), so the
// limits lie well above those.
const (
	DefaultLane       = 60 * time.Minute
	DefaultFirstEvent = 2 * time.Minute
	DefaultSilence    = 10 * time.Minute
	DefaultDrain      = 5 * time.Second
	DefaultAttempts   = 3
	DefaultRetryDelay = 2 * time.Second
	DefaultTurns      = 200
	DefaultTokens     = 20_000_000 // 200 turns of 100 000 tokens
	DefaultCost       = 20.0
)

func (l Limits) withDefaults() Limits {
	return Limits{
		Lane:       cmp.Or(l.Lane, DefaultLane),
		FirstEvent: cmp.Or(l.FirstEvent, DefaultFirstEvent),
		Silence:    cmp.Or(l.Silence, DefaultSilence),
		Drain:      cmp.Or(l.Drain, DefaultDrain),
		Attempts:   cmp.Or(l.Attempts, DefaultAttempts),
		RetryDelay: cmp.Or(l.RetryDelay, DefaultRetryDelay),
		Turns:      cmp.Or(l.Turns, DefaultTurns),
		Tokens:     cmp.Or(l.Tokens, DefaultTokens),
		Cost:       cmp.Or(l.Cost, DefaultCost),
	}
}
