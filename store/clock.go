package store

import "time"

// stampLayout is the only time format of the shared files: UTC, whole seconds.
const stampLayout = "2006-01-02T15:04:05Z"

// Stamp writes t as the shared files do, for example 2026-08-25T13:00:00Z
// (spec: state 1.3).
func Stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// ParseStamp reads a time written by [Stamp]. The zero time and false tell that s
// is none; the shared files are only checked for the shape of their times, so a
// caller must expect that.
func ParseStamp(s string) (time.Time, bool) {
	t, err := time.Parse(stampLayout, s)
	return t, err == nil
}
