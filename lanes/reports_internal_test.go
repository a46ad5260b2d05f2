package lanes

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pilothouse/lanes/pijson"
)

// Whatever comes is reported, what changes sooner, and a stream never more often than the
// interval for it.
func TestWhatComesIsReportedAndWhatChangesSooner(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		events []pijson.Progress // 10 ms apart; the state before is the zero value
		within time.Duration     // of the first event, until it is reported
	}{
		"a stream":                       {make([]pijson.Progress, 20), streamInterval},
		"one piece of a stream":          {make([]pijson.Progress, 1), streamInterval},
		"a change":                       {[]pijson.Progress{{Phase: "responding"}}, changeInterval},
		"a change in a stream":           {[]pijson.Progress{{}, {}, {Phase: "tool: read"}}, 20*time.Millisecond + changeInterval},
		"a change at the end of a pause": {append(make([]pijson.Progress, 24), pijson.Progress{Turns: 1}), streamInterval},
		"a change that is taken back":    {[]pijson.Progress{{Phase: "retrying"}, {}, {}}, changeInterval},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r reports
				began := time.Now()
				var told atomic.Int64
				for _, now := range tt.events {
					r.note(now, "", func() { told.CompareAndSwap(0, int64(time.Since(began))) })
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if got := time.Duration(told.Load()); got <= 0 || got > tt.within {
					t.Errorf("reported after %v, want it within %v", got, tt.within)
				}
			})
		})
	}
}

func TestAStreamIsReportedFourTimesASecondAndAWarningAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // of the owner
		var r reports
		state, told := pijson.Progress{Phase: "responding"}, 0
		report := func() {
			mu.Lock()
			defer mu.Unlock()
			told++
			r.reported(state, "")
		}
		note := func(warning string) {
			mu.Lock()
			defer mu.Unlock()
			r.note(state, warning, report)
		}
		for range 1000 { // ten seconds
			note("")
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		if told < 38 || told > 42 {
			t.Errorf("%d reports in ten seconds, want about 40", told)
		}
		told = 0
		note("half of the budget is used up")
		time.Sleep(changeInterval)
		synctest.Wait()
		if told != 1 {
			t.Error("a warning was not reported at once")
		}
		note("")
		r.stop()
		time.Sleep(time.Second)
		synctest.Wait()
		if told != 1 {
			t.Error("something was reported after the end")
		}
	})
}
