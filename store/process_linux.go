package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is the unit of /proc, fixed by the kernel's interface.
const ticksPerSecond = 100

func thisMachine() machine {
	host, _ := os.Hostname()
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return machine{
		host:         host,
		bootID:       readLine("/proc/sys/kernel/random/boot_id"),
		pidNamespace: namespace,
		machineID:    readLine("/etc/machine-id"),
	}
}

func readLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func inspectProcess(pid int) processInfo {
	if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
		return processInfo{}
	}
	stat := readLine(fmt.Sprintf("/proc/%d/stat", pid))
	// The name of the command stands in parentheses and may hold anything.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return processInfo{exists: true}
	}
	if state := fields[0]; state == "Z" || state == "X" {
		return processInfo{}
	}
	ticks := fields[19] // field 22 of the whole line
	return processInfo{exists: true, startTicks: ticks, started: startOf(ticks)}
}

func startOf(ticks string) time.Time {
	count, err := strconv.ParseInt(ticks, 10, 64)
	if err != nil {
		return time.Time{}
	}
	for line := range strings.Lines(readLine("/proc/stat")) {
		if value, ok := strings.CutPrefix(line, "btime "); ok {
			if boot, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
				return time.Unix(boot+count/ticksPerSecond, 0)
			}
		}
	}
	return time.Time{}
}
