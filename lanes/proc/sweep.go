package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// SweepReport tells what Sweep found.
type SweepReport struct {
	// Alive counts records whose orchestrator runs; they were left alone.
	Alive int
	// Closed counts records of dead orchestrators whose tree is gone now.
	Closed int
	// Killed counts the processes that were ended.
	Killed int
	// Kept counts records left in place because they cannot be read, nothing can
	// be proven about them here, or something of their tree did not die.
	Kept int
}

// Sweep ends what dead orchestrators have left: the trees of the children
// recorded in stateDir, and the cgroups made by orchestrators of this boot and
// this place in the hierarchy. It is meant for the start of an orchestrator and
// may run at any time, beside others.
//
// A record is closed only when its orchestrator is proven dead. A record of
// another boot is closed without a signal. An unreadable one is kept and
// logged. The error is about stateDir itself; a missing one is empty.
func Sweep(stateDir string, log *slog.Logger) (SweepReport, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var report SweepReport
	err := sweepRecords(stateDir, log, &report)
	sweepGroups(log, &report)
	return report, err
}

func sweepRecords(stateDir string, log *slog.Logger, report *SweepReport) error {
	if stateDir == "" {
		return nil
	}
	entries, err := os.ReadDir(stateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sweep child processes: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(stateDir, entry.Name())
		switch filepath.Ext(path) {
		case temporarySuffix:
			owner, _, _ := strings.Cut(entry.Name(), ".")
			if id, ok := parseOwner(owner); ok && dead(id) {
				_ = os.Remove(path)
			}
		case recordSuffix:
			if sweepRecord(path, log, report) {
				_ = os.Remove(path)
			}
		}
	}
	return nil
}

// sweepRecord ends the tree of one record, if its orchestrator is dead, and
// reports whether the record has done its work.
func sweepRecord(path string, log *slog.Logger, report *SweepReport) bool {
	if ofOtherBoot(filepath.Base(path)) {
		report.Closed++
		return true
	}
	rec, err := readRecord(path)
	if errors.Is(err, fs.ErrNotExist) { // its orchestrator, or another sweep, was quicker
		return false
	}
	if err != nil {
		log.Warn("record of a child process cannot be read and is left in place", "error", err)
		report.Kept++
		return false
	}
	if judge(rec.Orchestrator) == running {
		report.Alive++
		return false
	}
	if !dead(rec.Orchestrator) || rec.holdsSelf() {
		log.Warn("record of a child process cannot be judged here and is left in place", "file", path, "orchestrator", rec.Orchestrator.PID)
		report.Kept++
		return false
	}
	killed, clean := rec.end()
	report.Killed += killed
	if killed > 0 {
		log.Warn("ended processes that a dead orchestrator left", "label", rec.Label, "processes", killed)
	}
	if !clean {
		log.Warn("processes of a dead orchestrator do not end", "label", rec.Label, "file", path)
		report.Kept++
		return false
	}
	report.Closed++
	return true
}

// sweepGroups ends the cgroups of dead orchestrators, for those that kept no records.
func sweepGroups(log *slog.Logger, report *SweepReport) {
	for _, g := range leftGroups() {
		owner, ok := groupOwner(g.path)
		if !ok || !dead(owner) || g.holdsSelf() {
			continue
		}
		pids := g.kill()
		report.Killed += len(pids)
		g.removeWhenEmpty()
		log.Info("removed the cgroup of a dead orchestrator", "cgroup", g.path, "processes", len(pids))
	}
}

// end ends the tree that rec names, from another process than the one that
// started it, and removes its cgroup.
func (rec record) end() (killed int, clean bool) {
	if rec.Child.BootID != bootID() {
		return 0, true
	}
	if judge(rec.Child) == running {
		killed++ // the leader, which endTree does not count
	}
	others, clean := endTree(rec.Child, func() bool {
		state := judge(rec.Child)
		return state == running || state == ended
	}, true)
	g := openGroup(rec.Child)
	g.removeWhenEmpty()
	if g.path != "" {
		// The parent goes with its last child.
		group{path: filepath.Dir(g.path)}.remove()
	}
	return killed + others, clean && judge(rec.Child) != running
}

// holdsSelf reports whether this process belongs to the tree of rec: then the
// tree is not over, and ending it would end the sweep.
func (rec record) holdsSelf() bool {
	return strings.Contains(os.Getenv(EnvLane), ":"+rec.Child.Nonce) || openGroup(rec.Child).holdsSelf()
}

// dead reports whether the orchestrator is proven to be gone.
func dead(orchestrator Identity) bool {
	state := judge(orchestrator)
	return state == gone || state == ended
}
