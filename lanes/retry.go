package lanes

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"pilothouse/lanes/pijson"
)

// This file is the one place that says when a lane tries again and after how
// long. Whether a class of failure can be retried at all is in pijson's
// class table; pi's own retries inside a child come before any of this.

// maxRetryDelay bounds the wait of ours for a provider; a wait that the
// provider asks for itself may be longer.
const maxRetryDelay = time.Minute

// retries decides about further attempts of one lane.
type retries struct {
	limit      int
	provider   *backoff.ExponentialBackOff
	contention time.Duration // for each attempt made
}

func newRetries(limits Limits) *retries {
	return &retries{
		limit: limits.Attempts,
		provider: backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(limits.RetryDelay),
			backoff.WithMaxInterval(max(maxRetryDelay, limits.RetryDelay)),
			backoff.WithMultiplier(2),
			backoff.WithRandomizationFactor(0.5),
			backoff.WithMaxElapsedTime(0), // the lane's deadline is the limit
		),
		// Provider trouble needs seconds to pass; children that fought for a lock
		// at start only have to be kept apart (faults C34).
		contention: limits.RetryDelay / 10,
	}
}

// next returns the wait before another attempt, or false when there is none:
// the failure is final, the attempts are used up, or the wait would outlast the
// lane's remaining time. A provider's Retry-After is honoured.
func (r *retries) next(verdict pijson.Verdict, attempts int, remaining time.Duration) (time.Duration, bool) {
	contended := contended(verdict)
	retryable := verdict.Status == pijson.StatusFailed && (verdict.Retryable || contended)
	if !retryable || attempts >= r.limit {
		return 0, false
	}
	var delay time.Duration
	if contended {
		delay = r.contention * time.Duration(attempts)
	} else {
		delay = max(r.provider.NextBackOff(), verdict.RetryAfter)
	}
	return delay, delay < remaining
}

// contended tells that a child lost the fight for one of pi's lock files. The
// loser may say that there are no credentials, before its first event, although
// there are (faults C34).
func contended(verdict pijson.Verdict) bool {
	return verdict.Class == pijson.ClassStartContention ||
		verdict.Class == pijson.ClassAuth && verdict.BeforeFirstEvent
}
