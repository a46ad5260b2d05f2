package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/store"
)

func TestAContainerThatStartsAgainWithTheSameProcessIDFreesItsRuns(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	token := strings.Repeat("f", 32)
	write(t, ownerFile(dir), foreign(func(r map[string]any) { r["pidStart"] = psStart(t, os.Getpid()) }))
	identity := filepath.Join(dir.Dir, "pilothouse/owner.json")
	boot := strings.TrimSpace(read(t, "/proc/sys/kernel/random/boot_id"))
	describe := func(boot, namespace, ticks string) {
		write(t, identity, fmt.Sprintf(`{"schema":1,"token":%q,"pid":%d,"startTicks":%q,"bootId":%q,"pidNamespace":%q,"machineId":""}`,
			token, os.Getpid(), ticks, boot, namespace))
	}
	describe(boot, "pid:[1]", "1")
	refusedFor(t, dir, store.OwnedUnverifiable)

	t.Log("its lock is there, but free")
	write(t, filepath.Join(dir.Dir, "pilothouse/alive-"+token+".lock"), "")
	if lease := acquire(t, dir, "s"); lease.Generation != 4 {
		t.Errorf("got %+v", lease)
	}

	t.Log("without the lock, another boot or another start tell as well")
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	for _, describeDead := range []func(){
		func() { describe("another-boot", "pid:[1]", "1") },
		func() { describe(boot, namespace, "1") },
	} {
		dir = newRun(t)
		identity = filepath.Join(dir.Dir, "pilothouse/owner.json")
		write(t, ownerFile(dir), foreign(func(r map[string]any) { r["pidStart"] = psStart(t, os.Getpid()) }))
		describeDead()
		if lease := acquire(t, dir, "s"); lease.Generation != 4 {
			t.Errorf("got %+v", lease)
		}
	}
}
