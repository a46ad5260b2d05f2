package piharness

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Survivors are the process ids, in rising order, of all living processes that
// have marker in their command line or in the environment they were started
// with, the caller itself excepted. Zombies have neither and do not count, nor
// do processes of other users.
func Survivors(marker string) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	var pids []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		for _, file := range []string{"environ", "cmdline"} {
			// A process that ended in between, or is another user's, cannot be read.
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err == nil && bytes.Contains(data, []byte(marker)) {
				pids = append(pids, pid)
				break
			}
		}
	}
	slices.Sort(pids)
	return pids
}
