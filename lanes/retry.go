package lanes

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"pilothouse/lanes/pijson"
)

// This file is the one place that says when a lane tries again and after how
// long. Whether a class of failure can be retried at all is in pijson's
// class table; pi's own retries inside a child come before any of this.

// Waits between attempts. Provider trouble needs seconds to pass; children that
// fought for a lock at start only have to be kept apart (faults C34).
const (
	providerDelay    = 2 * time.Second
	maxProviderDelay = time.Minute
	contentionDelay  = 200 * time.Millisecond
)

// retries decides about further attempts of one lane.
type retries struct {
	limit    int
	provider *backoff.ExponentialBackOff
}

func newRetries(limit int) *retries {
	return &retries{limit: limit, provider: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(providerDelay),
		backoff.WithMaxInterval(maxProviderDelay),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.5),
		backoff.WithMaxElapsedTime(0), // the lane's deadline is the limit
	)}
}

// next returns the wait before another attempt, or false when there is none:
// the failure is final, the attempts are used up, or the wait would outlast the
// lane's remaining time. A provider's Retry-After is honoured.
func (r *retries) next(verdict pijson.Verdict, attempts int, remaining time.Duration) (time.Duration, bool) {
	if verdict.Status != pijson.StatusFailed || !verdict.Retryable || attempts >= r.limit {
		return 0, false
	}
	var delay time.Duration
	if verdict.Class == pijson.ClassStartContention {
		delay = contentionDelay * time.Duration(attempts)
	} else {
		delay = max(r.provider.NextBackOff(), verdict.RetryAfter)
	}
	return delay, delay < remaining
}
