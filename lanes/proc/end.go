package proc

import (
	"syscall"
	"time"
)

// sweepBound is how long endTree looks for processes that are left, and
// pollEvery how long it waits between two looks.
const (
	sweepBound = 2 * time.Second
	pollEvery  = 2 * time.Millisecond
)

// endTree kills every process of the tree of id that it can prove to belong to
// it, and waits until they are dead, for at most sweepBound.
//
// leaderHeld tells whether the number of the leader is still its own: it runs, or
// is a zombie that nobody has reaped. Only then are the group and the session
// touched. scan looks at all processes for the marker; without a cgroup it is
// the only way to find those that left the session.
//
// It returns how many processes other than the leader it ended, and whether the
// tree is empty now as far as it can see.
func endTree(id Identity, leaderHeld func() bool, scan bool) (killed int, clean bool) {
	own := openGroup(id)
	met := map[int]bool{id.PID: true}
	for deadline := time.Now().Add(sweepBound); ; time.Sleep(pollEvery) {
		held := leaderHeld()
		var found []process
		if scan { // before the first signal: a dead parent hides whose child a process was
			found = findTree(id, held)
		}
		pids := own.kill()
		if held {
			killGroup(id.PID, syscall.SIGKILL)
		}
		for _, p := range found {
			killProcess(p)
			pids = append(pids, p.pid)
		}
		for _, pid := range pids {
			met[pid] = true
		}
		if len(found) == 0 && own.empty() {
			return len(met) - 1, true
		}
		if time.Now().After(deadline) {
			return len(met) - 1, false
		}
	}
}
