package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gofrs/flock"

	"pilothouse/store"
)

// sign writes the sign of life of a pilothouse that is gone: nobody holds its lock.
func sign(t testing.TB, dir store.RunDir, token, boot, namespace, machine string) string {
	t.Helper()
	path := filepath.Join(dir.Dir, "pilothouse/alive-"+token+".json")
	write(t, path, fmt.Sprintf(`{"schema":1,"token":%q,"pid":%d,"startTicks":"1","bootId":%q,"pidNamespace":%q,"machineId":%q}`,
		token, os.Getpid(), boot, namespace, machine))
	return path
}

// holdSign keeps the lock on a sign of life, as its owner does.
func holdSign(t testing.TB, path string) {
	t.Helper()
	lock := flock.New(path, flock.SetFlag(os.O_RDWR))
	if held, err := lock.TryLock(); !held || err != nil {
		t.Fatal(held, err)
	}
	t.Cleanup(func() { _ = lock.Close() })
}

// A container has the host name and the process id of the one before it, or of the
// one beside it; the kernel's lock on the sign of life tells them apart.
func TestTheSignOfLifeDecidesWhereProcessIDsDoNot(t *testing.T) {
	t.Parallel()
	token := strings.Repeat("f", 32)
	boot := strings.TrimSpace(read(t, "/proc/sys/kernel/random/boot_id"))
	here, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		boot, namespace, machine string
		host                     string // as it is when empty
		held                     bool
		want                     store.OwnerState
	}{
		"a container that is gone":              {boot: boot, namespace: "pid:[1]", want: store.OwnerDead},
		"a container that lives":                {boot: boot, namespace: "pid:[1]", held: true, want: store.OwnerAlive},
		"our own id, used again":                {boot: boot, namespace: here, want: store.OwnerDead},
		"before a restart of the machine":       {boot: "another", namespace: here, want: store.OwnerDead},
		"a host that was given another name":    {boot: boot, namespace: here, host: "ci-1.local", held: true, want: store.OwnerAlive},
		"dead, the host got another name since": {boot: boot, namespace: here, host: "ci-1.local", want: store.OwnerDead},
		"another host":                          {boot: "another", namespace: here, host: "ci-1.local", want: store.OwnerElsewhere},
		"another machine of the same name":      {boot: "another", namespace: here, machine: "another", want: store.OwnerElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.machine != "" && strings.TrimSpace(readIfThere("/etc/machine-id")) == "" {
				t.Skip("this machine has no id")
			}
			dir := newRun(t)
			// By its id alone the owner lives: it is this process.
			write(t, ownerFile(dir), foreign(func(r map[string]any) {
				r["pidStart"] = psStart(t, os.Getpid())
				if test.host != "" {
					r["host"] = test.host
				}
			}))
			path := sign(t, dir, token, test.boot, test.namespace, test.machine)
			if test.held {
				holdSign(t, path)
			}
			if _, state, err := dir.Owner(); state != test.want || err != nil {
				t.Fatalf("got %s, %v, want %s", state, err, test.want)
			}
			switch test.want {
			case store.OwnerAlive:
				refusedFor(t, dir, store.OwnedAlive)
			case store.OwnerElsewhere:
				refusedFor(t, dir, store.OwnedElsewhere)
			default:
				if lease := acquire(t, dir, "s"); lease.Generation != 4 {
					t.Errorf("got %+v", lease)
				}
			}
		})
	}
}

func readIfThere(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

// Inside a namespace of its own a process has the id 1, and those outside have none.
func TestOwnersInOtherProcessNamespacesAreToldAliveFromDead(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	inside := startInNamespace(t, dir, "inside")
	if got := inside.answer(t); got != "acquired 1" {
		t.Fatal(got)
	}
	record, state, err := dir.Owner()
	if err != nil || state != store.OwnerAlive || record.PID != 1 {
		t.Errorf("seen from outside: %+v, %s, %v", record, state, err)
	}
	refusedFor(t, dir, store.OwnedAlive)
	if got := startInNamespace(t, dir, "beside").answer(t); got != "refused actively owned" {
		t.Errorf("from the namespace beside it: %s", got) // there its id is that of whoever asks
	}
	signal(t, inside, syscall.SIGKILL)
	_ = inside.Wait()
	if got := startInNamespace(t, dir, "again"); got.answer(t) != "acquired 2" {
		t.Error("the next one with the same id did not take over")
	}
	outside := newRun(t)
	acquire(t, outside, "s")
	if got := startInNamespace(t, outside, "inside").answer(t); got != "refused actively owned" {
		t.Errorf("an owner outside, seen from inside: %s", got) // there its id is nobody's
	}
}

func startInNamespace(t *testing.T, dir store.RunDir, session string) *process {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only the superuser may make a process namespace")
	}
	return startProcessIn(t, nil, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, "own", dir, session)
}
