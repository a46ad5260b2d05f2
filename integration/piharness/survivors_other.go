//go:build !linux

package piharness

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Survivors are the process ids, in rising order, of all living processes whose
// command line or environment ps shows with marker in it, the caller and ps
// excepted. It is empty where ps cannot be run.
func Survivors(marker string) []int {
	cmd := exec.Command("ps", "-axEww", "-o", "pid=,stat=,command=")
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var pids []int
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || strings.HasPrefix(fields[1], "Z") || !strings.Contains(lines.Text(), marker) {
			continue
		}
		pid, err := strconv.Atoi(fields[0])
		if err == nil && pid != os.Getpid() && pid != cmd.Process.Pid {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}
