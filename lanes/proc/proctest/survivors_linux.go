package proctest

import (
	"bytes"
	"os"
	"strconv"
)

// Survivors returns the processes that have marker in their arguments. Zombies
// have none any more, so they do not count.
func Survivors(marker string) []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		argv, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if bytes.Contains(argv, []byte(marker)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
