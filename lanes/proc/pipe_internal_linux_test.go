package proc

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOnlySoManyPipesAreWideAtATime(t *testing.T) {
	t.Parallel()
	var wide widePipes
	// open returns what a pipe holds as widen and as the kernel says.
	open := func() (thought, holds int, closed func()) {
		t.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = r.Close(), w.Close() })
		narrow := capacityOf(t, w)
		thought, closed = wide.widen(r)
		if holds = capacityOf(t, w); holds != widePipe && holds != narrow {
			t.Errorf("a pipe holds %d bytes", holds)
		}
		return thought, holds, closed
	}
	var closers []func()
	for i := range maxWide {
		thought, holds, closed := open()
		if thought != holds {
			t.Fatalf("pipe %d holds %d bytes, not %d", i, holds, thought)
		}
		if holds != widePipe {
			t.Skip("the kernel grants this user no more memory for pipes")
		}
		closers = append(closers, closed)
	}
	if thought, holds, _ := open(); holds == widePipe || thought == widePipe {
		t.Errorf("one pipe more holds %d bytes", holds)
	}
	for range 2 { // the second call must not count
		closers[0]()
	}
	if _, holds, _ := open(); holds != widePipe {
		t.Errorf("after one was closed another holds %d bytes", holds)
	}
	if _, holds, _ := open(); holds == widePipe {
		t.Error("a pipe that was closed once makes room for two")
	}
}

func TestTheStdoutOfAChildIsWideUntilItIsClosed(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var wide widePipes
	o := newWideOutput(r, &wide)
	if holds := capacityOf(t, w); o.after != holds {
		t.Errorf("%d bytes may be read after the deadline, the pipe holds %d", o.after, holds)
	}
	if _, err := w.WriteString("last words"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 100)
	if n, err := o.Read(p); string(p[:n]) != "last words" || err != nil || wide.n.Load() != 1 {
		t.Errorf("%q, %v, %d wide pipes", p[:n], err, wide.n.Load())
	}
	for range 2 {
		if n, err := o.Read(p); n != 0 || err == nil || wide.n.Load() != 0 {
			t.Errorf("at the end: %d bytes, %v, %d wide pipes", n, err, wide.n.Load())
		}
	}
}

func capacityOf(t *testing.T, pipe *os.File) int {
	t.Helper()
	n, err := unix.FcntlInt(pipe.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
