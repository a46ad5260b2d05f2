package store

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// activePointer is active.json. It is rewritten at each start and never cleared;
// with several work trees at once the last start wins (spec: state 1.3).
type activePointer struct {
	RunID       string `json:"run_id"`
	RunDir      string `json:"run_dir"`
	ArtifactDir string `json:"artifact_dir"`
	Extra       Extra  `json:"-" later:"*"`
}

func (r Root) activePath() string { return filepath.Join(r.Dir, "active.json") }

func (d RunDir) point(run Run) error {
	return writeDocument(d.Root.activePath(), activePointer{RunID: d.ID, RunDir: d.Dir, ArtifactDir: run.ArtifactDir})
}

// Active returns the run that active.json points to. There is none when the file
// is missing or broken or its run is gone; an error means it could not be read.
func (r Root) Active() (RunDir, bool, error) {
	var pointer activePointer
	err := readDocument(r.activePath(), &pointer)
	var corrupt *CorruptError
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, &corrupt) {
		return RunDir{}, false, nil
	}
	if err != nil {
		return RunDir{}, false, err
	}
	// Only the id is trusted: the recorded path may belong to a moved repository.
	dir, err := r.Run(pointer.RunID)
	return dir, err == nil, nil
}
