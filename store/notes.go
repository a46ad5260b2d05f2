package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// WorkflowNotes is what pilothouse keeps of a run's workflow beyond the checkpoint. No
// other program reads it, and a run goes on without it: then questions are asked,
// counters begin at zero, and whether a check still holds is judged by the approval.
type WorkflowNotes struct {
	Schema int `json:"schema"`
	// AutoComplete is the id of the session whose questions are answered with the
	// recommended option, "" for none.
	AutoComplete string `json:"autoComplete,omitempty"`
	// Execution is nil while nothing is executed.
	Execution *ExecutionNotes `json:"execution,omitempty"`
}

// ExecutionNotes is what is kept of an execution.
type ExecutionNotes struct {
	// Session is the id of the session that works on it.
	Session string `json:"session"`
	// ApprovedAt and PlanSHA256 are those of the approval, which tell this execution from
	// others. The time alone does not: it has no fractions of a second.
	ApprovedAt string `json:"approvedAt"`
	PlanSHA256 string `json:"planSha256"`
	// Verified is the commit that was checked out when a check passed, by its id.
	Verified map[string]string `json:"verified"`
	// Evidence is what was said when a check passed, by its id.
	Evidence map[string]string `json:"evidence,omitempty"`
	// GoalWait is how often the agent was woken up, in the words of whoever does it.
	GoalWait json.RawMessage `json:"goalWait,omitempty"`
}

// Of tells whether the notes are of the execution with this approval.
func (n *ExecutionNotes) Of(approval Approval) bool {
	return n != nil && n.ApprovedAt == approval.ApprovedAt && n.PlanSHA256 == approval.Plan.SHA256
}

const (
	notesName   = "workflow.json"
	notesSchema = 1
)

// LoadNotes reads the notes of a run, which are empty at first. Errors: *CorruptError.
func (d RunDir) LoadNotes() (WorkflowNotes, error) {
	path := filepath.Join(d.Dir, privateName, notesName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return WorkflowNotes{}, nil
	}
	if err != nil {
		return WorkflowNotes{}, fmt.Errorf("read notes: %w", err)
	}
	var notes WorkflowNotes
	if err := json.Unmarshal(data, &notes); err != nil {
		return WorkflowNotes{}, &CorruptError{Path: path, Reason: "invalid JSON: " + err.Error()}
	}
	if notes.Schema != notesSchema {
		return WorkflowNotes{}, &CorruptError{Path: path, Reason: fmt.Sprintf("schema has the unsupported version %d", notes.Schema)}
	}
	return notes, nil
}

// UpdateNotes changes the notes of a run; they are durable when it returns. Notes that
// are corrupt are put aside with the time in their name. Errors: ErrNoRun, *LostOwnerError.
func (d RunDir) UpdateNotes(now time.Time, change func(*WorkflowNotes)) error {
	return d.locked(context.Background(), func() error {
		if err := d.assertHeld(); err != nil {
			return err
		}
		notes, err := d.LoadNotes()
		var corrupt *CorruptError
		if errors.As(err, &corrupt) {
			err = os.Rename(corrupt.Path, corrupt.Path+".damaged-"+now.UTC().Format("20060102T150405Z"))
		}
		if err != nil {
			return fmt.Errorf("change notes: %w", err)
		}
		change(&notes)
		notes.Schema = notesSchema
		path, err := d.private(notesName)
		if err != nil {
			return err
		}
		compact, err := marshal(notes)
		if err != nil {
			return fmt.Errorf("change notes: %w", err)
		}
		var out bytes.Buffer
		if err := json.Indent(&out, compact, "", "\t"); err != nil {
			return fmt.Errorf("change notes: %w", err)
		}
		out.WriteByte('\n')
		if err := WriteFile(path, out.Bytes()); err != nil {
			return fmt.Errorf("change notes: %w", err)
		}
		return nil
	})
}
