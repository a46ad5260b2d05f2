package lanes

import (
	"testing"
	"time"

	"pilothouse/lanes/pijson"
)

func failed(class pijson.Class) pijson.Verdict {
	return pijson.Verdict{Status: pijson.StatusFailed, Class: class, Retryable: class.Retryable()}
}

func TestTheWaitForAProviderDoublesWithinItsSpread(t *testing.T) {
	t.Parallel()
	r := newRetries(Limits{Attempts: 100, RetryDelay: 2 * time.Second})
	middle := 2 * time.Second
	for attempt := 1; attempt <= 20; attempt++ {
		delay, again := r.next(failed(pijson.ClassRateLimit), attempt, time.Hour)
		if !again || delay < middle/2 || delay > middle*3/2+1 {
			t.Errorf("attempt %d waits %v, %v; want %v or half of that more or less", attempt, delay, again, middle)
		}
		middle = min(2*middle, maxRetryDelay)
	}
}

func TestWhetherALaneTriesAgain(t *testing.T) {
	t.Parallel()
	asked := failed(pijson.ClassRateLimit)
	asked.RetryAfter = 10 * time.Minute
	early := failed(pijson.ClassAuth)
	early.BeforeFirstEvent = true
	tests := []struct {
		name      string
		verdict   pijson.Verdict
		attempts  int
		remaining time.Duration
		again     bool
		wait      time.Duration // 0: not looked at
	}{
		{"a complete lane", pijson.Verdict{Status: pijson.StatusComplete}, 1, time.Hour, false, 0},
		{"a cancelled lane", pijson.Verdict{Status: pijson.StatusCancelled, Class: pijson.ClassCancelled}, 1, time.Hour, false, 0},
		{"refused credentials", failed(pijson.ClassAuth), 1, time.Hour, false, 0},
		{"an overloaded provider", failed(pijson.ClassOverloaded), 1, time.Hour, true, 0},
		{"the last attempt", failed(pijson.ClassOverloaded), 3, time.Hour, false, 0},
		{"too little time", failed(pijson.ClassOverloaded), 1, 500 * time.Millisecond, false, 0},
		{"what the provider asks for", asked, 1, time.Hour, true, 10 * time.Minute},
		{"more than there is time for", asked, 1, 10 * time.Minute, false, 0},
		{"a fight for a lock", failed(pijson.ClassStartContention), 1, time.Hour, true, 200 * time.Millisecond},
		{"a second fight for a lock", failed(pijson.ClassStartContention), 2, time.Hour, true, 400 * time.Millisecond},
		{"no credentials before the first event", early, 1, time.Hour, true, 200 * time.Millisecond},
		{"no credentials three times", early, 3, time.Hour, false, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			delay, again := newRetries(Limits{}.withDefaults()).next(test.verdict, test.attempts, test.remaining)
			if again != test.again || (test.wait != 0 && delay != test.wait) {
				t.Errorf("waits %v, %v; want %v, %v", delay, again, test.wait, test.again)
			}
		})
	}
}

// A lane may work for an hour; a panic then is not the last it is allowed.
func TestTheWaitsBetweenRestartsDoNotRunOut(t *testing.T) {
	t.Parallel()
	waits := (&Supervision{Restarts: LaneRestarts}).waits()
	want := restartDelay
	for range LaneRestarts {
		if got := waits.NextBackOff(); got != want {
			t.Errorf("waits %v, want %v", got, want)
		}
		want *= 2
	}
	if got := waits.NextBackOff(); got >= 0 {
		t.Errorf("a restart more than allowed, after %v", got)
	}
	if got := (&Supervision{}).waits().NextBackOff(); got >= 0 {
		t.Errorf("the zero value restarts after %v", got)
	}
}
