package compaction

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Settings are those of pi-vcc-config.json that concern one compaction.
type Settings struct {
	// OverrideDefault lets ordinary compactions of Pi come here; without it only
	// those that ask for this compiler do.
	OverrideDefault bool
	// SmartKeepTail keeps more turns than asked for while they are small.
	SmartKeepTail bool
	// Debug has the caller keep a description of the compaction.
	Debug bool
}

// DefaultSettings hold where a request has none.
func DefaultSettings() Settings { return Settings{OverrideDefault: true, SmartKeepTail: true} }

// The kinds of phases.
const (
	Planning  = "planning"
	Execution = "execution"
)

// Phase is what the session works on, for the summary. Unknown facts are empty.
type Phase struct {
	Kind string `json:"kind"` // Planning or Execution

	RunID       string `json:"runId"`
	ArtifactDir string `json:"artifactDir"`
	PlanPath    string `json:"planPath"`

	CurrentI     string   `json:"currentI"`
	ImplIDs      []string `json:"implIds"`
	RemainingVCs []string `json:"remainingVcs"`
}

// The reasons of a compaction (Pi extension API, session_before_compact).
const (
	Manual    = "manual"
	Threshold = "threshold"
	Overflow  = "overflow"
)

// Request is one compaction that Pi is about to do. It refers to the document that
// it was parsed from.
type Request struct {
	// Instructions is what the user or an extension wrote behind /compact.
	Instructions string
	Reason       string // Manual, Threshold or Overflow; "" counts as Manual
	WillRetry    bool   // Pi repeats the turn after the compaction
	// Settings are nil where the request has none.
	Settings *Settings
	// Phase is nil outside of planning and execution.
	Phase *Phase

	tokensBefore    int64
	previousSummary string
	fileOps         fileOps
	entries         []entry // of the branch, oldest first
}

// Compactions counts the compactions on the branch: one that was asked for before
// another was done has fewer than one that knows of it.
func (r Request) Compactions() (n int) {
	for _, e := range r.entries {
		if e.kind == "compaction" {
			n++
		}
	}
	return n
}

// fileOps are the files that Pi itself has seen touched.
type fileOps struct{ read, written, edited []string }

// ErrRequest is matched by the errors of [ParseRequest].
var ErrRequest = errors.New("no compaction request")

// ParseRequest reads {preparation, branchEntries, customInstructions, reason,
// willRetry, settings, phase}, all as Pi's session_before_compact gives them, and
// keeps data. What has an unexpected JSON type counts as absent, except that the
// document is an object, its branchEntries an array and its phase one of the known
// kinds: without those there is nothing to go by. Errors match [ErrRequest].
func ParseRequest(data []byte) (Request, error) {
	if !json.Valid(data) {
		var nothing struct{}
		return Request{}, fmt.Errorf("%w: %w", ErrRequest, json.Unmarshal(data, &nothing))
	}
	doc, _ := valueAt(data, 0)
	if !doc.isObject() {
		return Request{}, fmt.Errorf("%w: it is no JSON object", ErrRequest)
	}
	r := Request{Reason: Manual}
	var branch, phase value
	doc.members(func(key []byte, member value) {
		switch string(key) {
		case "preparation":
			r.readPreparation(member)
		case "branchEntries":
			branch = member
		case "customInstructions":
			r.Instructions = member.text()
		case "reason":
			if reason := member.text(); reason != "" {
				r.Reason = reason
			}
		case "willRetry":
			r.WillRetry = member.isTrue()
		case "settings":
			r.Settings = readSettings(member)
		case "phase":
			phase = member
		}
	})
	if !branch.isArray() {
		return Request{}, fmt.Errorf("%w: branchEntries is no array", ErrRequest)
	}
	branch.items(func(item value) { r.entries = append(r.entries, readEntry(item)) })
	if err := r.readPhase(phase); err != nil {
		return Request{}, err
	}
	return r, nil
}

func (r *Request) readPreparation(v value) {
	v.members(func(key []byte, member value) {
		switch string(key) {
		case "tokensBefore":
			r.tokensBefore = member.count()
		case "previousSummary":
			r.previousSummary = member.text()
		case "fileOps":
			r.fileOps = fileOps{
				read: texts(member.member("read")), written: texts(member.member("written")), edited: texts(member.member("edited")),
			}
		}
	})
}

// texts are the strings of an array.
func texts(v value) (list []string) {
	v.items(func(item value) {
		if s := item.text(); s != "" {
			list = append(list, s)
		}
	})
	return list
}

func readSettings(v value) *Settings {
	if !v.isObject() {
		return nil
	}
	s := DefaultSettings()
	v.members(func(key []byte, member value) {
		set := map[string]*bool{"overrideDefaultCompaction": &s.OverrideDefault, "smartKeepTail": &s.SmartKeepTail, "debug": &s.Debug}[string(key)]
		switch {
		case set == nil:
		case string(member) == "true":
			*set = true
		case string(member) == "false":
			*set = false
		}
	})
	return &s
}

func (r *Request) readPhase(v value) error {
	if v.isNull() {
		return nil
	}
	p := Phase{
		Kind: v.member("kind").text(), RunID: v.member("runId").text(), ArtifactDir: v.member("artifactDir").text(),
		PlanPath: v.member("planPath").text(), CurrentI: v.member("currentI").text(),
		ImplIDs: texts(v.member("implIds")), RemainingVCs: texts(v.member("remainingVcs")),
	}
	if p.Kind != Planning && p.Kind != Execution {
		return fmt.Errorf("%w: phase.kind is neither %q nor %q; give null outside of both", ErrRequest, Planning, Execution)
	}
	r.Phase = &p
	return nil
}
