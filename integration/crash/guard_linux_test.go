package crash_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"pilothouse/lanes/proc/proctest"
)

// killGuard kills the guard of a driver, which stands still until its own end: it
// would replace its guard. It is false when there is none.
func (d *process) killGuard(t *testing.T) bool {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, pid := range proctest.Survivors("pilothouse-guard") {
		if parent(pid) == d.cmd.Process.Pid {
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	return false
}

func parent(pid int) (id int) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	var state string
	_, _ = fmt.Sscan(rest, &state, &id)
	return id
}
