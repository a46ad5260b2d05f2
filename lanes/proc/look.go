package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Leftovers counts the records of children in a folder.
type Leftovers struct {
	// Alive are children of orchestrators that run.
	Alive int `json:"alive"`
	// Left are children of dead orchestrators; the next Sweep closes their records.
	Left int `json:"left"`
	// Unclear are records that cannot be read, or of which nothing can be proven here.
	Unclear int `json:"unclear"`
}

// Look tells what Sweep would find in stateDir, and changes nothing. The error is
// about stateDir itself; a missing one is empty.
func Look(stateDir string) (Leftovers, error) {
	var found Leftovers
	entries, err := os.ReadDir(stateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found, fmt.Errorf("look for records of child processes: %w", err)
	}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != recordSuffix {
			continue
		}
		rec, err := readRecord(filepath.Join(stateDir, entry.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // its orchestrator was done with it just now
		case ofOtherBoot(entry.Name()), err == nil && dead(rec.Orchestrator):
			found.Left++
		case err == nil && judge(rec.Orchestrator) == running:
			found.Alive++
		default:
			found.Unclear++
		}
	}
	return found, nil
}

// CgroupProblem says why children would run without a cgroup of their own, or nil. It
// tries one, which is gone when it returns.
func CgroupProblem() error {
	owner, err := self()
	if err != nil {
		return err
	}
	g, err := newParentGroup(owner, spawners.Add(1))
	if err != nil {
		return err
	}
	g.remove()
	return nil
}
