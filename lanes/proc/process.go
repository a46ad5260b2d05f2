package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
)

// process is one line of the process table.
type process struct {
	pid, parent, session int
	ticks                uint64 // start time, see Identity.StartTicks
	zombie               bool
}

// liveness is what can be proven about a recorded process.
type liveness int

const (
	unproven liveness = iota // it may or may not be the recorded one: hands off
	gone                     // the recorded process has exited, and maybe its number names another now
	ended                    // it is a zombie: its number is still its own
	running
)

// ownerPrefix starts every name that carries its maker.
const ownerPrefix = "pilothouse-"

// ownerName puts the identity of an orchestrator of this boot into the name of a
// file or group that it makes, so that a sweep can tell whose it is.
func ownerName(owner Identity) string {
	return fmt.Sprintf("%s%s-%d-%d", ownerPrefix, owner.PIDNamespace, owner.PID, owner.StartTicks)
}

// parseOwner is the inverse of ownerName.
func parseOwner(name string) (Identity, bool) {
	id := Identity{BootID: bootID()}
	rest, ok := strings.CutPrefix(name, ownerPrefix)
	if !ok {
		return Identity{}, false
	}
	_, err := fmt.Sscanf(strings.ReplaceAll(rest, "-", " "), "%s %d %d", &id.PIDNamespace, &id.PID, &id.StartTicks)
	return id, err == nil && ownerName(id) == name
}

// self is the identity of this process.
var self = sync.OnceValues(func() (Identity, error) {
	p, err := readProcess(os.Getpid())
	return Identity{PID: p.pid, StartTicks: p.ticks, BootID: bootID(), PIDNamespace: pidNamespace()}, err
})

// judge tells what has become of the process that id names.
func judge(id Identity) liveness {
	switch boot := bootID(); {
	case boot == "" || id.BootID == "":
		return unproven
	case boot != id.BootID:
		return gone
	case id.PIDNamespace != pidNamespace() || id.PID <= 1 || id.StartTicks == 0:
		return unproven
	}
	p, err := readProcess(id.PID)
	switch {
	case err == nil && p.ticks != id.StartTicks:
		return gone
	case err == nil && p.zombie:
		return ended
	case err == nil:
		return running
	// A process table that hides the processes of others must not make them look dead.
	case errors.Is(err, fs.ErrNotExist) && errors.Is(syscall.Kill(id.PID, 0), syscall.ESRCH):
		return gone
	}
	return unproven
}

// killGroup sends sig to the process group of leader. The caller has proven that
// the number is still the leader's own.
func killGroup(leader int, sig syscall.Signal) {
	if leader > 1 && leader != os.Getpid() {
		_ = syscall.Kill(-leader, sig)
	}
}
