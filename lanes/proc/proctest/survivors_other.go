//go:build !linux

package proctest

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Survivors returns the processes that have marker in their arguments.
func Survivors(marker string) []int {
	out, _ := exec.Command("ps", "-axo", "pid=,stat=,command=").Output()
	var pids []int
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.HasPrefix(fields[1], "Z") || !strings.Contains(line, marker) {
			continue
		}
		if pid, err := strconv.Atoi(fields[0]); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
