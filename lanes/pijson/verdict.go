package pijson

import (
	"fmt"
	"strings"
	"time"
)

// Cause says why we ended a child. Empty means that it ended by itself.
type Cause string

// The causes.
const (
	CauseNone         Cause = ""
	CauseCancelled    Cause = "cancelled"      // the user or the run asked for it
	CauseTimedOut     Cause = "timed_out"      // the whole lane took too long
	CauseNoFirstEvent Cause = "no_first_event" // nothing came in the time for starting
	CauseSilent       Cause = "silent"         // nothing came for too long
	CauseBudget       Cause = "budget"         // a cap on turns, tokens or cost
	CauseDrained      Cause = "drained"        // the drain window after the answer or the end of stdout was over
	CauseStartFailed  Cause = "start_failed"   // there never was a child
)

// End is what is known about the end of a child besides its events.
type End struct {
	Code   int    // exit status, if it exited
	Signal string // such as "SIGKILL", if a signal ended it
	Cause  Cause
	Stderr string // the tail of standard error
	Err    error  // why it could not be started, or reading its events failed
	Stats  ReaderStats
}

// Status is the terminal state of a lane's attempt.
type Status string

// Every child ends in exactly one of these.
const (
	StatusComplete  Status = "complete"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// Verdict is what became of a child. It is a plain value.
type Verdict struct {
	Status Status
	Class  Class  // ClassNone if complete
	Cause  Cause  // as in End
	Detail string // the provider's or child's own words, at most 2 KiB
	// Message is one plain sentence for the user; empty if complete. It holds Detail.
	Message string

	// Output is the final answer, trimmed; only if complete.
	Output string
	// Partial is the text seen last, if not complete.
	Partial string

	Model      string
	StopReason string
	// Usage is the sum over all assistant messages, tool results and compactions,
	// failed attempts included.
	Usage Usage
	Turns int

	// Retryable tells whether another attempt makes sense, RetryAfter how long the
	// provider asked to wait before it.
	Retryable  bool
	RetryAfter time.Duration

	// BeforeFirstEvent tells that the child ended before it printed any event. An
	// "auth" failure then may be contention among children that start together.
	BeforeFirstEvent bool
	// Notes are remarks on a lane that went well enough, such as "did not exit by
	// itself".
	Notes []string
}

// Verdict judges a child that has ended. It may be called more than once; the same
// events and end give the same verdict.
//
// A complete answer counts, whatever came after it: a child that we had to end, that
// was cancelled or killed too late, or that left with an error status, is complete,
// with a note. Without one, a lane that was cancelled is cancelled and every other is
// failed.
func (f *Fold) Verdict(end End) Verdict {
	v := Verdict{
		Cause:            end.Cause,
		Model:            f.model,
		StopReason:       f.stopReason,
		Usage:            f.usage,
		Turns:            f.turns,
		BeforeFirstEvent: !f.started,
	}
	class, detail := f.judge(end)
	switch class {
	case ClassNone:
		v.Status = StatusComplete
		v.Output = strings.TrimSpace(f.last.Text)
		v.Notes = f.notes(end)
		return v
	case ClassCancelled:
		v.Status = StatusCancelled
	default:
		v.Status = StatusFailed
	}
	v.Class = class
	v.Partial = f.partialText()
	v.Detail = cut(strings.ToValidUTF8(strings.TrimSpace(detail), "\ufffd"), maxDetail)
	v.Message = class.Sentence()
	if v.Detail != "" {
		v.Message += ": " + v.Detail
	}
	// An answer that the older Pi lost with its connection is worth another try,
	// unlike one that hit the model's limit.
	v.Retryable = class.Retryable() || (class == ClassTruncated && f.cutShort())
	if v.Retryable {
		v.RetryAfter = RetryAfter(v.Detail)
	}
	v.Notes = f.notes(end)
	return v
}

const maxDetail = 2 << 10

// judge finds the class and its detail; ClassNone is success. The order of the
// questions is the policy: what the stream proves comes before why we ended the
// child, and that before what its exit tells.
func (f *Fold) judge(end End) (Class, string) {
	tool := f.Trespass()
	switch {
	case f.answered && tool == "" && !f.cutShort():
		return ClassNone, ""
	case end.Cause == CauseCancelled:
		return ClassCancelled, f.lastError
	case tool != "":
		return ClassProtocol, fmt.Sprintf("the tool %q ran although it was not allowed", tool)
	case f.answered:
		return ClassTruncated, "the stream of the provider ended without a finish reason"
	}
	if class, ours := causeClass[end.Cause]; ours {
		return f.stopped(class, end)
	}
	return f.exited(end)
}

// cutShort recognises an answer that the older Pi reports as finished although the
// provider's stream broke off: stop, text, and a usage of all zeros (Pi fact §5). A
// provider that never reports usage looks the same, so the answer is accepted when
// an earlier message of the same lane was without usage too. With a single message
// the two cannot be told apart, and a cut review must not pass for a whole one.
func (f *Fold) cutShort() bool {
	return f.generation == generationOld && f.answered &&
		f.last.Usage != nil && *f.last.Usage == Usage{} &&
		(f.usageSeen || f.zeroTurns <= 1)
}

var causeClass = map[Cause]Class{
	CauseTimedOut:     ClassTimedOut,
	CauseNoFirstEvent: ClassNoFirstEvent,
	CauseSilent:       ClassSilent,
	CauseBudget:       ClassBudget,
	CauseStartFailed:  ClassStartFailure,
}

// stopped judges a child that we ended. If it was in trouble with its provider, that
// is the class, because it decides what helps; Verdict.Cause keeps the rest.
func (f *Fold) stopped(class Class, end End) (Class, string) {
	switch {
	case class == ClassStartFailure:
		detail := errorText(end.Err, end.Stderr)
		if Classify(detail) == ClassStartContention {
			class = ClassStartContention
		}
		return class, detail
	case class == ClassBudget:
		return class, f.lastError
	case f.lastError != "":
		if known := Classify(f.lastError); known != ClassUnknown {
			return known, fmt.Sprintf("%s (%s)", f.lastError, class.Sentence())
		}
		return class, f.lastError
	case class == ClassNoFirstEvent:
		if Classify(end.Stderr) == ClassStartContention {
			return ClassStartContention, end.Stderr
		}
		return class, lastLines(end.Stderr)
	}
	return class, ""
}

// exited judges a child that ended by itself, or that we ended after its standard
// output had.
func (f *Fold) exited(end End) (Class, string) {
	killed := f.killedBy(end)
	failed := f.last != nil && !f.working &&
		(f.last.StopReason == "error" || f.last.StopReason == "aborted")
	switch {
	case killed != "" && (f.working || f.retrying || (f.last == nil && f.lastError == "")):
		if f.lastError != "" {
			killed += ", after the provider's error: " + f.lastError
		}
		return ClassKilled, killed
	case f.lastTooLong && !f.working:
		return ClassProtocol, "a message was longer than can be read"
	case failed && f.last.StopReason == "aborted":
		return ClassUnknown, orElse(f.last.Error, "the request was aborted")
	case failed || f.lastError != "":
		return Classify(f.lastError), orElse(f.lastError, "the provider gave no reason")
	case end.Err != nil:
		return ClassInternal, end.Err.Error()
	case f.last == nil || f.working:
		return f.unfinished(end, killed)
	}
	switch {
	case f.last.StopReason == "length":
		return ClassTruncated, "the model reached its limit of output tokens"
	case !f.last.stopped() || f.last.ToolCalls > 0 || killed != "":
		return f.unfinished(end, killed)
	case f.retrying:
		return ClassProtocol, "pi announced another attempt and ended without it"
	}
	return ClassEmpty, ""
}

// unfinished judges a child that ended in the middle of its work.
func (f *Fold) unfinished(end End, killed string) (Class, string) {
	if killed != "" {
		return ClassKilled, killed
	}
	ours := end.Cause == CauseDrained || end.Signal != ""
	if end.Code != 0 && !ours {
		detail := fmt.Sprintf("exit status %d before the answer was complete", end.Code)
		if stderr := lastLines(end.Stderr); stderr != "" {
			detail += ": " + stderr
		}
		class := Classify(end.Stderr)
		switch {
		case class == ClassUnknown && !f.started:
			class = ClassStartFailure
		case class == ClassStartFailure && f.started:
			class = ClassUnknown
		}
		return class, detail
	}
	switch {
	case f.aborted:
		return ClassUnknown, "the run was aborted"
	case f.turns > 0:
		return ClassProtocol, "pi ended in the middle of its work"
	case end.Cause == CauseDrained:
		return ClassEmpty, orElse(lastLines(end.Stderr), "it closed its standard output and went on running")
	}
	return ClassEmpty, lastLines(end.Stderr)
}

// killedBy says what killed the child, if it was not us. Pi turns SIGTERM and SIGHUP
// into the exit statuses 143 and 129 (Pi fact §7).
func (f *Fold) killedBy(end End) string {
	switch {
	case end.Cause != CauseNone:
		return ""
	case end.Signal != "":
		return "killed by " + end.Signal
	}
	if name, ok := signalStatus[end.Code]; ok {
		return fmt.Sprintf("exit status %d, killed by %s", end.Code, name)
	}
	return ""
}

var signalStatus = map[int]string{
	129: "SIGHUP", 130: "SIGINT", 131: "SIGQUIT", 134: "SIGABRT", 135: "SIGBUS", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM",
}

func (f *Fold) partialText() string {
	if len(f.live.text) > 0 {
		return strings.TrimSpace(strings.ToValidUTF8(string(f.live.text), "\ufffd"))
	}
	return strings.TrimSpace(f.lastText)
}

func (f *Fold) notes(end End) []string {
	var notes []string
	if f.answered {
		switch {
		case end.Cause != CauseNone:
			notes = append(notes, "did not exit by itself")
			if end.Cause != CauseDrained {
				notes = append(notes, "ended after the answer: "+strings.ReplaceAll(string(end.Cause), "_", " "))
			}
		case end.Signal != "":
			notes = append(notes, "killed by "+end.Signal+" after the answer")
		case end.Code != 0:
			notes = append(notes, fmt.Sprintf("exit status %d after the answer", end.Code))
		}
		if end.Err != nil {
			notes = append(notes, "after the answer: "+end.Err.Error())
		}
	}
	if f.tooLong > 0 {
		notes = append(notes, fmt.Sprintf("%d events were too long and were skipped", f.tooLong))
	}
	if end.Stats.Noise > 0 {
		notes = append(notes, fmt.Sprintf("%d lines on standard output were no events", end.Stats.Noise))
	}
	return notes
}

func errorText(err error, stderr string) string {
	if err == nil {
		return lastLines(stderr)
	}
	if tail := lastLines(stderr); tail != "" {
		return err.Error() + ": " + tail
	}
	return err.Error()
}

// lastLines returns the end of a child's standard error, where the reason stands.
func lastLines(stderr string) string {
	stderr = strings.TrimSpace(stderr)
	if len(stderr) > maxDetail/2 {
		stderr = stderr[len(stderr)-maxDetail/2:]
		if i := strings.IndexByte(stderr, '\n'); i >= 0 {
			stderr = stderr[i+1:]
		}
	}
	return stderr
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
