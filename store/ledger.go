package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Decision is a line of decisions.jsonl: a question and how it was answered.
type Decision struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
	Answer   string   `json:"answer"`
	// AnswerSource is "user" or "auto-complete".
	AnswerSource string `json:"answer_source"`
	QuestionID   string `json:"questionId,omitempty"`
	Artifact     string `json:"artifact,omitempty"`
	RecordedAt   string `json:"recorded_at"`
}

// Reference is a line of refs.jsonl: a source that was downloaded or read.
type Reference struct {
	Title      string `json:"title"`
	URL        string `json:"url"`
	Kind       string `json:"kind"`
	Retrieval  string `json:"retrieval"`
	LocalPath  string `json:"localPath,omitempty"`
	Coverage   string `json:"coverage,omitempty"`
	Gaps       string `json:"gaps,omitempty"`
	RecordedAt string `json:"recorded_at"`
}

// Subagent is a line of subagents.jsonl: a subagent that did its work.
type Subagent struct {
	// Role is reviewer, criticizer, ref-analyst or executor.
	Role string `json:"role"`
	Name string `json:"name"`
	// Model is nil when the subagent inherited the session's.
	Model      *string `json:"model"`
	SessionDir string  `json:"sessionDir,omitempty"`
	RecordedAt string  `json:"recorded_at"`
}

// AppendDecision records a decision and returns it as stored. Errors: ErrNoRun,
// *LostOwnerError.
func (d RunDir) AppendDecision(entry Decision, now time.Time) (Decision, error) {
	entry.RecordedAt = Stamp(now)
	if entry.Options == nil {
		entry.Options = []string{}
	}
	return entry, d.appendEntry("decisions.jsonl", entry)
}

// ToolDecision is a line of decisions.jsonl as the record-decision action writes it:
// with the parameter's own spelling, answerSource (spec: state 1.3, "quirk").
// [RunDir.Decisions] reads both.
type ToolDecision struct {
	Question     string   `json:"question"`
	Options      []string `json:"options"`
	Answer       string   `json:"answer"`
	AnswerSource string   `json:"answerSource"`
	Artifact     string   `json:"artifact,omitempty"`
	RecordedAt   string   `json:"recorded_at"`
}

// AppendToolDecision is [RunDir.AppendDecision] for the record-decision action.
func (d RunDir) AppendToolDecision(entry ToolDecision, now time.Time) (ToolDecision, error) {
	entry.RecordedAt = Stamp(now)
	if entry.Options == nil {
		entry.Options = []string{}
	}
	return entry, d.appendEntry("decisions.jsonl", entry)
}

// AppendRef records a reference and returns it as stored. Errors: ErrNoRun,
// *LostOwnerError.
func (d RunDir) AppendRef(entry Reference, now time.Time) (Reference, error) {
	entry.RecordedAt = Stamp(now)
	return entry, d.appendEntry("refs.jsonl", entry)
}

// AppendSubagent records a subagent and returns it as stored. Errors: ErrNoRun,
// *LostOwnerError.
func (d RunDir) AppendSubagent(entry Subagent, now time.Time) (Subagent, error) {
	entry.RecordedAt = Stamp(now)
	return entry, d.appendEntry("subagents.jsonl", entry)
}

// Decisions reads the decisions in the order they were recorded. Lines that cannot
// be read are skipped; a missing ledger is an empty one.
func (d RunDir) Decisions() ([]Decision, error) {
	type other struct {
		AnswerSource string `json:"answerSource"`
	}
	return readLedger(d.path("decisions.jsonl"), func(raw []byte) (Decision, bool) {
		var entry Decision
		var alias other
		if json.Unmarshal(raw, &entry) != nil || json.Unmarshal(raw, &alias) != nil {
			return Decision{}, false
		}
		entry.AnswerSource = firstOf(entry.AnswerSource, alias.AnswerSource)
		return entry, entry.Question != ""
	})
}

// Refs reads the references like [RunDir.Decisions] reads decisions.
func (d RunDir) Refs() ([]Reference, error) {
	type other struct {
		LocalPath string `json:"local_path"`
	}
	return readLedger(d.path("refs.jsonl"), func(raw []byte) (Reference, bool) {
		var entry Reference
		var alias other
		if json.Unmarshal(raw, &entry) != nil || json.Unmarshal(raw, &alias) != nil {
			return Reference{}, false
		}
		entry.LocalPath = firstOf(entry.LocalPath, alias.LocalPath)
		return entry, entry.Title != "" || entry.URL != ""
	})
}

// Subagents reads the subagents like [RunDir.Decisions] reads decisions.
func (d RunDir) Subagents() ([]Subagent, error) {
	type other struct {
		SessionDir string `json:"session_dir"`
	}
	return readLedger(d.path("subagents.jsonl"), func(raw []byte) (Subagent, bool) {
		var entry Subagent
		var alias other
		if json.Unmarshal(raw, &entry) != nil || json.Unmarshal(raw, &alias) != nil {
			return Subagent{}, false
		}
		entry.SessionDir = firstOf(entry.SessionDir, alias.SessionDir)
		return entry, entry.Role != "" && entry.Name != ""
	})
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// readLedger reads what can be read: bad lines are skipped, of two entries glued
// into one line both count, and of a line cut short what is whole.
func readLedger[T any](path string, decode func([]byte) (T, bool)) ([]T, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	defer file.Close()
	entries, err := scanLedger(file, decode)
	if err != nil {
		return nil, fmt.Errorf("read ledger %s: %w", path, err)
	}
	return entries, nil
}

func scanLedger[T any](ledger io.Reader, decode func([]byte) (T, bool)) ([]T, error) {
	var entries []T
	lines := bufio.NewReader(ledger)
	for {
		line, readErr := lines.ReadBytes('\n')
		values := json.NewDecoder(bytes.NewReader(line))
		for {
			var raw json.RawMessage
			if values.Decode(&raw) != nil {
				break
			}
			if entry, ok := decode(raw); ok && raw[0] == '{' {
				entries = append(entries, entry)
			}
		}
		if errors.Is(readErr, io.EOF) {
			return entries, nil
		}
		if readErr != nil {
			return nil, readErr
		}
	}
}

// appendEntry adds one line in one write and returns when it is durable. It holds
// the lock against other pilothouse processes; the Pi extension appends whole lines
// without a lock, which goes together.
func (d RunDir) appendEntry(name string, entry any) error {
	if err := d.assertHeld(); err != nil {
		return err
	}
	line, err := marshal(entry)
	if err != nil {
		return fmt.Errorf("encode ledger entry: %w", err)
	}
	lock, err := d.private("ledger.lock")
	if err != nil {
		return err
	}
	return withLock(context.Background(), lock, func() error {
		if err := d.appendLine(name, line); err != nil {
			return fmt.Errorf("append to %s: %w", d.path(name), err)
		}
		return nil
	})
}

func (d RunDir) appendLine(name string, line []byte) (err error) {
	file, err := os.OpenFile(d.path(name), os.O_RDWR|os.O_CREATE|os.O_APPEND, privateFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	tail, size, err := unfinishedLine(file)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	switch {
	case len(tail) == 0:
	case wholeEntry(tail):
		line = append([]byte{'\n'}, line...)
	default:
		if err := d.setAside(name, tail); err != nil {
			return err
		}
		if err := file.Truncate(size - int64(len(tail))); err != nil {
			return err
		}
	}
	if _, err := file.Write(line); err != nil {
		return err
	}
	return syncFile(file)
}

// setAside keeps what a crash left of a line, so that removing it loses nothing.
// The other reader gives up a whole ledger for one bad line, so it cannot stay.
func (d RunDir) setAside(name string, tail []byte) error {
	path, err := d.private(fmt.Sprintf("torn-%s-%s", randomHex(4), name))
	if err != nil {
		return err
	}
	return CreateFile(path, tail)
}

func wholeEntry(tail []byte) bool {
	return json.Valid(tail) && bytes.HasPrefix(bytes.TrimSpace(tail), []byte("{"))
}

// unfinishedLine returns what follows the last line break of the file, and the size
// of the file.
func unfinishedLine(file *os.File) ([]byte, int64, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	const block = 64 << 10
	var tail []byte
	for end := info.Size(); end > 0; {
		start := max(0, end-block)
		chunk := make([]byte, end-start)
		if _, err := file.ReadAt(chunk, start); err != nil {
			return nil, 0, err
		}
		if i := bytes.LastIndexByte(chunk, '\n'); i >= 0 {
			return append(chunk[i+1:], tail...), info.Size(), nil
		}
		tail = append(chunk, tail...)
		end = start
	}
	return tail, info.Size(), nil
}
