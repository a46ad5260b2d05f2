//go:build unix && !linux

package store

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func thisMachine() machine {
	host, _ := os.Hostname()
	return machine{host: host}
}

// inspectProcess asks ps for the state and the start, in a language and time zone
// that do not depend on who asks.
func inspectProcess(pid int) processInfo {
	if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
		return processInfo{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), psPatience)
	defer cancel()
	command := exec.CommandContext(ctx, "ps", "-o", "state=,lstart=", "-p", strconv.Itoa(pid))
	command.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	out, err := command.Output()
	state, start, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !found {
		return processInfo{exists: true}
	}
	if strings.HasPrefix(state, "Z") {
		return processInfo{}
	}
	start = strings.TrimSpace(start)
	started, _ := time.Parse("Mon Jan _2 15:04:05 2006", start)
	return processInfo{exists: true, startTicks: start, started: started}
}
