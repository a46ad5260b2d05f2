package store_test

import (
	"os"
	"os/exec"
	"testing"

	"pilothouse/store"
)

func TestAProcessIsGoneWhenItHasEndedAndNotBefore(t *testing.T) {
	t.Parallel()
	if store.ProcessOf(os.Getpid()).Gone() {
		t.Error("this process is gone")
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	process := store.ProcessOf(child.Process.Pid)
	if process.Gone() {
		t.Error("a child that sleeps is gone")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed
	if !process.Gone() {
		t.Error("a child that was killed lives")
	}
	later := process
	later.PID = os.Getpid() // which began at another time
	if !later.Gone() {
		t.Error("a later process with the same id is taken for it")
	}
}
