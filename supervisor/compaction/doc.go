// Package compaction compiles what a Pi session has done so far into a short
// summary, without a model: five sections and a ranked brief of the transcript
// (spec: compaction). It decides which messages stay as they are, or that the
// compaction is better cancelled or left to Pi.
//
// [Compact] is a pure function of its request. It guarantees, whatever the session
// looks like:
//
//   - What stays is a conversation that a model accepts: every tool result directly
//     follows the assistant message with its call, every call has its result.
//   - The summary is not longer than what it replaces, or than one page where that
//     is less (pageChars).
//   - The same request gives the same bytes.
//
// Lengths are counted in Unicode characters.
package compaction
