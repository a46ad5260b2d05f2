package compaction

import (
	"fmt"
	"strings"
)

// Failure is why a compaction of Pi has failed.
type Failure string

// The kinds of failures (spec: compaction 6.5).
const (
	NothingToDo Failure = "content" // the session is too small, or was compacted before
	Aborted     Failure = "abort"   // by the user, or with the model's stream
	Retryable   Failure = "retryable"
)

var abortWords = []string{"abort", "cancelled", "canceled", "stream ended", "stream closed", "terminated", "summarization failed", "summarisation failed"}

// ClassifyFailure sorts the message of a failed compaction.
func ClassifyFailure(message string, aborted bool) Failure {
	message = strings.ToLower(message)
	for _, words := range []string{"nothing to compact", "already compacted", "session too small", "too few messages"} {
		if strings.Contains(message, words) {
			return NothingToDo
		}
	}
	if aborted {
		return Aborted
	}
	for _, words := range abortWords {
		if strings.Contains(message, words) {
			return Aborted
		}
	}
	return Retryable
}

// NeedsContinue tells whether a Pi of this version stops after a threshold or overflow
// compaction and has to be told to go on: those before 0.84.4 do. A version that
// cannot be read needs nothing.
func NeedsContinue(piVersion string) bool {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(strings.TrimPrefix(piVersion, "v"), "%d.%d.%d", &major, &minor, &patch); n != 3 {
		return false
	}
	switch {
	case major != 0:
		return false
	case minor != 84:
		return minor < 84
	}
	return patch < 4
}
