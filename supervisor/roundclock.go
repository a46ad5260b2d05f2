package supervisor

import (
	"sync"
	"time"
)

// roundClock gives each round of this process a millisecond of its own, because
// round ids are made of it: two calls at the same moment must not share a round.
type roundClock struct {
	now  func() time.Time
	mu   sync.Mutex
	last time.Time
}

func (c *roundClock) next() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.UnixMilli(max(c.now().UnixMilli(), c.last.UnixMilli()+1))
	return c.last
}
