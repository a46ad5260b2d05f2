package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrNoRound tells that there is no record of a round.
var ErrNoRound = errors.New("there is no such round")

// LaneStatus is the state of a lane in a round record.
type LaneStatus string

// The states of a lane; the last three are terminal.
const (
	LaneStatusQueued    LaneStatus = "queued"
	LaneStatusRunning   LaneStatus = "running"
	LaneStatusComplete  LaneStatus = "complete"
	LaneStatusFailed    LaneStatus = "failed"
	LaneStatusCancelled LaneStatus = "cancelled"
)

// Terminal tells whether the lane has ended.
func (s LaneStatus) Terminal() bool {
	return s == LaneStatusComplete || s == LaneStatusFailed || s == LaneStatusCancelled
}

// RoundRecord is what pilothouse keeps of a round beyond the checkpoint: how each
// lane went, what it cost, why it failed. No other program reads it.
type RoundRecord struct {
	Schema      int          `json:"schema"`
	RoundID     string       `json:"roundId"`
	Role        string       `json:"role"`
	Target      string       `json:"target,omitempty"`
	Model       string       `json:"model,omitempty"`
	PlanPath    string       `json:"planPath,omitempty"`
	PlanSHA256  string       `json:"planSha256,omitempty"`
	Focus       string       `json:"focus,omitempty"`
	Context     string       `json:"context,omitempty"`
	StartedAt   time.Time    `json:"startedAt"`
	CompletedAt time.Time    `json:"completedAt,omitzero"`
	Lanes       []LaneRecord `json:"lanes"`
}

// LaneRecord is one lane of a round record.
type LaneRecord struct {
	LaneID string `json:"laneId"`
	Name   string `json:"name,omitempty"`
	Lens   string `json:"lens,omitempty"`
	RefID  string `json:"refId,omitempty"`
	RefDir string `json:"refDir,omitempty"`
	// Batch counts from 1.
	Batch      int        `json:"batch,omitempty"`
	Status     LaneStatus `json:"status"`
	Attempts   int        `json:"attempts"`
	Model      string     `json:"model,omitempty"`
	Usage      LaneUsage  `json:"usage"`
	Turns      int        `json:"turns"`
	DurationMs int64      `json:"durationMs"`
	Exit       LaneExit   `json:"exit"`
	Error      LaneError  `json:"error"`
	// ResultFile is relative to the directory of the round, see [RoundDir.ReadReview].
	ResultFile string `json:"resultFile,omitempty"`
	// WellFormed is nil while the output was not judged.
	WellFormed  *bool     `json:"wellFormed,omitempty"`
	StartedAt   time.Time `json:"startedAt,omitzero"`
	CompletedAt time.Time `json:"completedAt,omitzero"`
}

// LaneUsage counts tokens, and the cost in dollars, of all attempts of a lane.
type LaneUsage struct {
	Input      int64   `json:"input"`
	Output     int64   `json:"output"`
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	Cost       float64 `json:"cost"`
}

// LaneExit is how the last child ended; Code is nil when a signal ended it.
type LaneExit struct {
	Code   *int   `json:"code,omitempty"`
	Signal string `json:"signal,omitempty"`
}

// LaneError is why a lane has no result.
type LaneError struct {
	Class   string `json:"class,omitempty"`
	Message string `json:"message,omitempty"`
}

// RoundDir is where the records of rounds, and their review texts, are kept: in a
// run, or for rounds that belong to none.
type RoundDir struct {
	// Dir holds rounds/<roundId>.json.
	Dir string
	// Reviews holds reviews/<roundId>__<laneId>.md.
	Reviews string

	run  RunDir // zero for rounds that belong to none
	base string // what is never made: the directory of the run, else the state root
}

// RoundDir returns the round records of the run.
func (d RunDir) RoundDir() RoundDir {
	return RoundDir{Dir: d.path(privateName), Reviews: d.Dir, run: d, base: d.Dir}
}

// AdHoc returns the round records of rounds that belong to no run.
func (r Root) AdHoc() RoundDir {
	dir := filepath.Join(r.Dir, "cache", privateName, "adhoc")
	return RoundDir{Dir: dir, Reviews: dir, base: r.Dir}
}

// WriteReview is [RunDir.WriteReview] for this directory.
func (d RoundDir) WriteReview(roundID, laneID, text string) (string, error) {
	if err := d.prepare(); err != nil {
		return "", fmt.Errorf("write review: %w", err)
	}
	return writeReview(d.Reviews, roundID, laneID, text)
}

// ReadReview is [RunDir.ReadReview] for this directory.
func (d RoundDir) ReadReview(file string) (string, error) { return readReview(d.Reviews, file) }

func (d RoundDir) recordPath(roundID string) string {
	return filepath.Join(d.Dir, "rounds", roundID+".json")
}

// prepare makes the directory of ad hoc rounds; in a run it only checks that the run
// is there and, when this process held it, still is ours.
func (d RoundDir) prepare() error {
	if d.run != (RunDir{}) {
		if _, err := os.Stat(d.run.Dir); err != nil {
			return d.run.missing()
		}
		return d.run.assertHeld()
	}
	return d.make(d.Dir)
}

// make makes a directory below the base. Without the base there is nothing to make
// it in: the repository is not where it was.
func (d RoundDir) make(path string) error {
	err := makeBelow(d.base, path, privateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return &MovedError{RunID: d.run.ID, Dir: d.base}
	}
	return err
}

// SaveRound writes the record of a round; it is durable when it returns. Errors:
// *InvalidError, ErrNoRun, *LostOwnerError.
func (d RoundDir) SaveRound(record RoundRecord) error {
	record.Schema = 1
	if err := record.validate(); err != nil {
		return fmt.Errorf("save round: %w", err)
	}
	compact, err := marshal(record)
	if err != nil {
		return fmt.Errorf("save round: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compact, "", "\t"); err != nil {
		return fmt.Errorf("save round: %w", err)
	}
	out.WriteByte('\n')
	path := d.recordPath(record.RoundID)
	if err := d.prepare(); err != nil {
		return fmt.Errorf("save round: %w", err)
	}
	if err := d.make(filepath.Dir(path)); err != nil {
		return fmt.Errorf("save round: %w", err)
	}
	if err := WriteFile(path, out.Bytes()); err != nil {
		return fmt.Errorf("save round: %w", err)
	}
	return nil
}

// LoadRound reads the record of a round. Errors: ErrNoRound, *CorruptError.
func (d RoundDir) LoadRound(roundID string) (RoundRecord, error) {
	if !ValidID(roundID) {
		return RoundRecord{}, fmt.Errorf("%w: %q", ErrNoRound, roundID)
	}
	path := d.recordPath(roundID)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return RoundRecord{}, fmt.Errorf("%w: %s", ErrNoRound, roundID)
	}
	if err != nil {
		return RoundRecord{}, fmt.Errorf("read round: %w", err)
	}
	var record RoundRecord
	if err := json.Unmarshal(data, &record); err != nil {
		return RoundRecord{}, &CorruptError{Path: path, Reason: "invalid JSON: " + err.Error()}
	}
	if err := record.validate(); err != nil {
		return RoundRecord{}, &CorruptError{Path: path, Reason: err.Error()}
	}
	if record.RoundID != roundID {
		return RoundRecord{}, &CorruptError{Path: path, Reason: "roundId names another round, " + record.RoundID}
	}
	return record, nil
}

// Rounds reads all records, oldest first. Records that cannot be read are left out
// and told in the error, which joins one *CorruptError for each; the others are
// returned all the same.
func (d RoundDir) Rounds() ([]RoundRecord, error) {
	entries, err := os.ReadDir(filepath.Join(d.Dir, "rounds"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list rounds: %w", err)
	}
	var records []RoundRecord
	var failures []error
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || !ValidID(id) {
			continue
		}
		record, err := d.LoadRound(id)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		records = append(records, record)
	}
	slices.SortStableFunc(records, func(a, b RoundRecord) int { return a.StartedAt.Compare(b.StartedAt) })
	return records, errors.Join(failures...)
}

var laneStatuses = []LaneStatus{LaneStatusQueued, LaneStatusRunning, LaneStatusComplete, LaneStatusFailed, LaneStatusCancelled}

func (r RoundRecord) validate() error {
	rule := &rules{}
	rule.check(r.Schema == 1, "schema", "has the unsupported version %d", r.Schema)
	rule.id("roundId", r.RoundID)
	for i, lane := range r.Lanes {
		key := fmt.Sprintf("lanes[%d]", i)
		rule.id(key+".laneId", lane.LaneID)
		oneOf(rule, key+".status", lane.Status, laneStatuses...)
		if lane.ResultFile != "" {
			rule.relative(key+".resultFile", lane.ResultFile)
		}
	}
	return rule.err
}
