package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// selfProgram names the running program for a re-exec, even after its file was replaced.
func selfProgram() (string, error) { return "/proc/self/exe", nil }

var bootID = sync.OnceValue(func() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
})

var pidNamespace = sync.OnceValue(func() string {
	link, _ := os.Readlink("/proc/self/ns/pid")
	return strings.Trim(strings.TrimPrefix(link, "pid:"), "[]")
})

// readProcess reads /proc/<pid>/stat. The error is fs.ErrNotExist when there is
// no such process.
func readProcess(pid int) (process, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, unix.ESRCH) { // it went between open and read
		err = fs.ErrNotExist
	}
	if err != nil {
		return process{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	// The name, in parentheses, may hold anything; the fields after it do not.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return process{}, fmt.Errorf("read process %d: short line in stat", pid)
	}
	number := func(i int) int { n, _ := strconv.Atoi(string(fields[i])); return n }
	ticks, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return process{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	state := fields[0][0]
	return process{pid: pid, parent: number(1), session: number(3), ticks: ticks, zombie: state == 'Z' || state == 'X'}, nil
}

// findTree returns the living processes of the tree of id, without its leader
// and without this process: those that bear its nonce in their environment and,
// when the leader is known to hold its number still, those of its session and
// its descendants.
func findTree(id Identity, leaderHeld bool) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var young []process
	children := map[int][]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid <= 1 || pid == os.Getpid() || pid == id.PID {
			continue
		}
		p, err := readProcess(pid)
		// Whoever started before the leader is none of its descendants.
		if err != nil || p.zombie || p.ticks < id.StartTicks {
			continue
		}
		young = append(young, p)
		children[p.parent] = append(children[p.parent], pid)
	}
	descends := map[int]bool{}
	if leaderHeld {
		for todo := []int{id.PID}; len(todo) > 0; {
			next := children[todo[0]]
			todo = append(todo[1:], next...)
			for _, pid := range next {
				descends[pid] = true
			}
		}
	}
	var found []process
	for _, p := range young {
		if descends[p.pid] || leaderHeld && p.session == id.PID || bears(p.pid, id.Nonce) {
			found = append(found, p)
		}
	}
	return found
}

// bears reports whether the environment that pid was started with holds the nonce in its marker.
func bears(pid int, nonce string) bool {
	if nonce == "" {
		return false
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(kv, []byte(EnvLane+"=")); ok && bytes.Contains(value, []byte(":"+nonce)) {
			return true
		}
	}
	return false
}

// killProcess ends p if it is still the process that was looked at, and reports
// whether a signal was sent.
func killProcess(p process) bool {
	if p.pid <= 1 || p.pid == os.Getpid() {
		return false
	}
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
	}
	if now, err := readProcess(p.pid); err != nil || now.ticks != p.ticks || now.zombie {
		return false
	}
	if err != nil { // no pidfd on this kernel: the check just made must do
		return unix.Kill(p.pid, unix.SIGKILL) == nil
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}
