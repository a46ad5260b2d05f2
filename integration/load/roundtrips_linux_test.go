package load_test

import (
	"fmt"
	"time"
)

// roundTrips are those of hooks and of questions that need no work, sorted.
type roundTrips struct{ hooks, plain []time.Duration }

func (r roundTrips) String() string {
	if len(r.hooks) == 0 {
		return "none"
	}
	told := fmt.Sprintf("%d, round trip p50 %v p99 %v", len(r.hooks), quantile(r.hooks, 0.5), quantile(r.hooks, 0.99))
	if len(r.plain) == 0 {
		return told
	}
	return fmt.Sprintf("%s, %.1f and %.1f times that of a question without work", told, over(r.hooks, r.plain, 0.5), over(r.hooks, r.plain, 0.99))
}

func quantile(sorted []time.Duration, share float64) time.Duration {
	return sorted[int(share*float64(len(sorted)-1))].Round(10 * time.Microsecond)
}

// over is a quantile of some times over that of others.
func over(some, others []time.Duration, share float64) float64 {
	return some[int(share*float64(len(some)-1))].Seconds() / others[int(share*float64(len(others)-1))].Seconds()
}
