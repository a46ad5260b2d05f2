package proc

import (
	"path/filepath"
	"strings"
	"time"
)

// group is a cgroup v2 folder that we made, which only Linux has. The zero group
// holds nothing.
type group struct{ path string }

// groupOwner is the orchestrator that made the parent group at path.
func groupOwner(path string) (Identity, bool) {
	owner, _, _ := strings.Cut(filepath.Base(path), ".")
	return parseOwner(owner)
}

// openGroup returns the cgroup of a child, or the zero group when it has none or
// the name cannot be one that a Spawner made for it: a damaged record must never
// empty another group.
func openGroup(id Identity) group {
	_, ok := groupOwner(filepath.Dir(id.Cgroup))
	if !ok || id.Nonce == "" || filepath.Base(id.Cgroup) != id.Nonce || !isCgroup2(id.Cgroup) {
		return group{}
	}
	return group{path: id.Cgroup}
}

// removeWhenEmpty deletes the group once its killed processes are dead, within sweepBound.
func (g group) removeWhenEmpty() {
	for deadline := time.Now().Add(sweepBound); !g.empty() && time.Now().Before(deadline); {
		time.Sleep(pollEvery)
	}
	g.remove()
}
