package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"
)

var (
	// ErrNoRun tells that a run does not exist.
	ErrNoRun = errors.New("run does not exist")
	// ErrBadRunID tells that a string cannot be the id of a run.
	ErrBadRunID = errors.New("not a run id")
	// ErrBadStatus tells that a status is not one a run can be set to.
	ErrBadStatus = errors.New("not a run status")
)

// RunStatus is where a run stands. Any status may follow any other (spec: state 1.4).
type RunStatus string

// The statuses that can be set; newer writers know more.
const (
	StatusPlanning  RunStatus = "planning"
	StatusAccepted  RunStatus = "accepted"
	StatusExecuting RunStatus = "executing"
	StatusStopped   RunStatus = "stopped"
	StatusAbandoned RunStatus = "abandoned"
	StatusDone      RunStatus = "done"
)

var runStatuses = []RunStatus{StatusPlanning, StatusAccepted, StatusExecuting, StatusStopped, StatusAbandoned, StatusDone}

// Valid tells whether the status is one that can be set.
func (s RunStatus) Valid() bool { return slices.Contains(runStatuses, s) }

// Terminal tells whether nothing is expected to happen to the run any more.
func (s RunStatus) Terminal() bool { return s == StatusAbandoned || s == StatusDone }

// Run is run.json (spec: state 1.3).
type Run struct {
	Schema int    `json:"schema"`
	RunID  string `json:"run_id"`
	Skill  string `json:"skill"`
	// Topic is the slug of the topic, not its text.
	Topic       string `json:"topic"`
	RequestText string `json:"request_text"`
	Workdir     string `json:"workdir"`
	ArtifactDir string `json:"artifact_dir"`
	// LanguageTag is the language setting when the run started.
	LanguageTag *string   `json:"language_tag" store:"null"`
	Status      RunStatus `json:"status"`
	CreatedAt   string    `json:"created_at"`
	UpdatedAt   string    `json:"updated_at"`
	Extra       Extra     `json:"-" later:"*"`
}

// MarshalJSON writes the run with all it was read with.
func (r Run) MarshalJSON() ([]byte, error) { return encodeValue(reflect.ValueOf(r), nil) }

// UnmarshalJSON reads a run as from its file.
func (r *Run) UnmarshalJSON(data []byte) error {
	*r = Run{}
	return decodeDocument(data, r)
}

// Validate checks what must hold for a run to be used at all.
func (r *Run) Validate() error {
	if r.Schema != 1 {
		return invalid("schema", "has the unsupported version %d", r.Schema)
	}
	if !ValidRunID(r.RunID) {
		return invalid("run_id", "is not a run id")
	}
	for key, value := range map[string]string{"artifact_dir": r.ArtifactDir, "status": string(r.Status)} {
		if value == "" {
			return invalid(key, "is missing")
		}
	}
	return nil
}

// runIDStart is how every run id begins: with the time its run was started.
const runIDStart = "00000000T000000Z-"

// ValidRunID tells whether id has the form of a run id, which makes it safe as a
// file name.
func ValidRunID(id string) bool {
	return len(id) > len(runIDStart) && len(id) <= 255 && hasShape(id[:len(runIDStart)], runIDStart) && isName(id[len(runIDStart):])
}

// RunDir is the directory of one run.
type RunDir struct {
	Root Root
	ID   string
	// Dir is <state root>/runs/<ID>.
	Dir string
}

func (d RunDir) path(name string) string { return filepath.Join(d.Dir, name) }

// missing is the error for a run without its directory.
func (d RunDir) missing() error {
	if heldLease(d) != nil {
		return &MovedError{RunID: d.ID, Dir: d.Dir}
	}
	return fmt.Errorf("%w: %s", ErrNoRun, d.ID)
}

// private returns the path of a file only pilothouse uses, and makes its folder.
// The folder is only made in a run that exists.
func (d RunDir) private(name string) (string, error) {
	err := os.Mkdir(d.path(privateName), privateDir)
	switch {
	case err == nil:
		err = syncDirectory(d.Dir)
	case errors.Is(err, fs.ErrExist):
		err = nil
	case errors.Is(err, fs.ErrNotExist):
		return "", d.missing()
	}
	if err != nil {
		return "", fmt.Errorf("open run: %w", err)
	}
	return filepath.Join(d.Dir, privateName, name), nil
}

// locked runs work while no other pilothouse process changes the run: its record,
// its checkpoint or its owner.
func (d RunDir) locked(ctx context.Context, work func() error) error {
	path, err := d.private("run.lock")
	if err != nil {
		return err
	}
	return withLock(ctx, path, work)
}

// Run returns the directory of a run that exists. Errors: ErrBadRunID, ErrNoRun.
func (r Root) Run(id string) (RunDir, error) {
	if !ValidRunID(id) {
		return RunDir{}, fmt.Errorf("%w: %q", ErrBadRunID, id)
	}
	dir := RunDir{Root: r, ID: id, Dir: filepath.Join(r.Dir, "runs", id)}
	info, err := os.Stat(dir.Dir)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist): // it may be there (faults E84)
		return RunDir{}, fmt.Errorf("open run: %w", err)
	case err != nil || !info.IsDir():
		return RunDir{}, dir.missing()
	}
	return dir, nil
}

// Load reads run.json. Errors: ErrNoRun, *CorruptError.
func (d RunDir) Load() (Run, error) {
	var run Run
	err := readDocument(d.path("run.json"), &run)
	if errors.Is(err, fs.ErrNotExist) {
		return Run{}, d.missing()
	}
	if err != nil {
		return Run{}, fmt.Errorf("read run: %w", err)
	}
	if run.RunID != d.ID {
		return Run{}, &CorruptError{Path: d.path("run.json"), Reason: "run_id names another run, " + run.RunID}
	}
	return run, nil
}

// SetStatus changes the status of the run. Errors: ErrBadStatus, ErrNoRun,
// *CorruptError, *LostOwnerError.
func (d RunDir) SetStatus(status RunStatus, now time.Time) (Run, error) {
	if !status.Valid() {
		return Run{}, fmt.Errorf("%w: %q; use one of %v", ErrBadStatus, status, runStatuses)
	}
	return d.update(now, func(run *Run) { run.Status = status })
}

// SetPlace records that the run goes on in another work tree, with its artifacts in a
// directory there (see [Root.CopyArtifacts]).
func (d RunDir) SetPlace(workdir, artifactDir string, now time.Time) (Run, error) {
	return d.update(now, func(run *Run) { run.Workdir, run.ArtifactDir = workdir, artifactDir })
}

func (d RunDir) update(now time.Time, change func(*Run)) (Run, error) {
	var run Run
	err := d.locked(context.Background(), func() (err error) {
		if err := d.assertHeld(); err != nil {
			return err
		}
		if run, err = d.Load(); err != nil {
			return err
		}
		change(&run)
		run.UpdatedAt = Stamp(now)
		if err := writeDocument(d.path("run.json"), run); err != nil {
			return fmt.Errorf("write run: %w", err)
		}
		return nil
	})
	if err != nil {
		return Run{}, err
	}
	return run, nil
}

// RunSummary is one run of a listing. Err is set, and Run is empty, when its record
// cannot be read; other runs are not affected.
type RunSummary struct {
	Dir RunDir
	Run Run
	Err error
}

// TranscriptDir is where the transcripts of a run's lanes are cached, those of rounds
// that belong to no run under a name of their own. They may be deleted at any time.
func (r Root) TranscriptDir(runID string) string {
	return filepath.Join(r.Dir, "cache", privateName, "transcripts", runID)
}

// MakeTranscriptDir makes [Root.TranscriptDir] in a state root that is there.
func (r Root) MakeTranscriptDir(runID string) (string, error) {
	dir := r.TranscriptDir(runID)
	if err := makeBelow(r.Dir, dir, privateDir); err != nil {
		return "", fmt.Errorf("make the directory of transcripts: %w", err)
	}
	return dir, nil
}

// RunIDs lists the ids of all runs, oldest first, and reads none of them. A workspace
// without state has none.
func (r Root) RunIDs() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(r.Dir, "runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var ids []string
	for _, entry := range entries {
		// A stray file is no run; whether a link leads to a directory is seen when it is opened.
		if ValidRunID(entry.Name()) && (entry.IsDir() || entry.Type()&fs.ModeSymlink != 0) {
			ids = append(ids, entry.Name())
		}
	}
	return ids, nil
}

// Summary reads the record of a run that [Root.RunIDs] listed; false when it is gone.
func (r Root) Summary(id string) (RunSummary, bool) {
	dir, err := r.Run(id)
	if err != nil {
		return RunSummary{}, false
	}
	summary := RunSummary{Dir: dir}
	summary.Run, summary.Err = dir.Load()
	return summary, true
}

// Runs reads all runs, oldest first.
func (r Root) Runs() ([]RunSummary, error) {
	ids, err := r.RunIDs()
	if err != nil {
		return nil, err
	}
	var runs []RunSummary
	for _, id := range ids {
		if summary, ok := r.Summary(id); ok {
			runs = append(runs, summary)
		}
	}
	return runs, nil
}
