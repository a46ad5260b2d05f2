package lanes

import (
	"time"

	"pilothouse/lanes/pijson"
)

// How soon a lane reports what has come. A change of what it does is told ten times a
// second at most. While its child goes on with the same text, thought or tool, four times
// are enough for an eye, and hundreds of such lanes leave the daemon time for questions.
const (
	changeInterval = 100 * time.Millisecond
	streamInterval = 250 * time.Millisecond
)

// reports tells when a lane has to report. The lock of its owner guards it.
type reports struct {
	due     *time.Timer // the report that is to come; nil while none is
	at      time.Time   // when it comes
	told    pijson.Progress
	warning string // that was told
}

// note makes sure that report is called, on a goroutine of its own, for an event that has
// come.
func (r *reports) note(now pijson.Progress, warning string, report func()) {
	within := streamInterval
	switch {
	case now != r.told || warning != r.warning:
		within = changeInterval
	case r.due != nil: // which is most of a stream
		return
	}
	switch at := time.Now().Add(within); {
	case r.due == nil:
		r.due, r.at = time.AfterFunc(within, report), at
	case at.Before(r.at) && r.due.Stop(): // else it comes at this moment
		r.due.Reset(within)
		r.at = at
	}
}

// reported takes down what the report that was due tells.
func (r *reports) reported(now pijson.Progress, warning string) {
	*r = reports{told: now, warning: warning}
}

// stop lets nothing come any more.
func (r *reports) stop() {
	if r.due != nil {
		r.due.Stop()
	}
}
