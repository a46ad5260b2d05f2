package soak_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"pilothouse/lanes/proc/proctest"
)

// descriptors counts the open files of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// memory reads a line such as VmRSS of this process's status, in bytes.
func memory(t *testing.T, key string) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("\n"+key+":"))
	var kib int64
	if _, err := fmt.Sscanf(string(rest), "%d kB", &kib); err != nil {
		t.Fatalf("read %s: %v", key, err)
	}
	return kib << 10
}

// killer kills children with SIGKILL from outside, behind the system's back.
type killer struct {
	marker string
	orders chan uint64 // which child, modulo their number
	done   sync.WaitGroup
	kills  atomic.Int64
	most   atomic.Int64 // children that it has seen at once
}

func newKiller(marker string) *killer {
	k := &killer{marker: marker, orders: make(chan uint64, 1)}
	k.done.Go(func() {
		for which := range k.orders {
			k.kill(which)
		}
	})
	return k
}

// strike orders a kill, unless one is on its way.
func (k *killer) strike(which uint64) {
	select {
	case k.orders <- which:
	default:
	}
}

func (k *killer) close() {
	close(k.orders)
	k.done.Wait()
}

func (k *killer) kill(which uint64) {
	pids := proctest.Survivors(k.marker)
	k.most.Store(max(k.most.Load(), int64(len(pids))))
	if len(pids) == 0 {
		return
	}
	pid := pids[which%uint64(len(pids))]
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	defer func() { _ = unix.Close(fd) }()
	// The number may belong to another process since it was found; what the
	// descriptor names cannot change any more.
	argv, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err == nil && bytes.Contains(argv, []byte(k.marker)) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
		k.kills.Add(1)
	}
}
