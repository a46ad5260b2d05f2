package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// streaming scripts two lanes that stream for minutes in their first round and
// answer in the next, and one that answers at once.
func streaming() []scriptedmodel.Rule {
	slow := endless()
	slow.Times = 1
	then := say(nothingFound)
	slow.Then = &then
	return []scriptedmodel.Rule{on(correctnessLens, slow), on(orderingLens, slow), on(verificationLens, say(oneFinding))}
}

// midStream is true when one lane has its answer and two are being answered.
func midStream(s scriptedmodel.Stats) bool { return s.Open == 2 && s.Completed == 1 }

// untilStored waits until the lane that answers is complete in the checkpoint, so
// that what a cancel finds does not depend on who is faster.
func (w *workspace) untilStored() {
	w.t.Helper()
	for {
		files, err := filepath.Glob(w.runFile("*", "checkpoint.json"))
		if err != nil {
			w.t.Fatal(err)
		}
		if len(files) == 1 && strings.Contains(piharness.ReadFile(w.t, files[0]), "__verification.md") {
			return
		}
		select {
		case <-w.t.Context().Done():
			w.t.Fatal("the answer of a lane was never recorded")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// checkCancelled checks what a round that was ended by force leaves behind.
func (w *workspace) checkCancelled(runID, roundID string) {
	w.t.Helper()
	if left := w.Survivors(); len(left) != 0 {
		w.t.Errorf("processes survived: %v", left)
	}
	for _, lane := range w.checkpoint(runID).ReviewRounds[0].Lanes {
		if done := lane.LaneID == "verification"; done != (lane.Status == "complete") || lane.Status == "running" {
			w.t.Errorf("lane %s is %s in the checkpoint", lane.LaneID, lane.Status)
		}
	}
	record := w.sidecar(runID, roundID)
	if len(record.Lanes) != 3 || record.CompletedAt == "" {
		w.t.Errorf("record %+v", record)
	}
	for _, lane := range record.Lanes {
		want := "cancelled"
		if lane.LaneID == "verification" {
			want = "complete"
		}
		if lane.Status != want || lane.CompletedAt == "" || want == "cancelled" && lane.Error.Class != "cancelled" {
			w.t.Errorf("record of lane %s: %+v", lane.LaneID, lane)
		}
	}
	w.checkPrivate()
}

// checkResumed resumes the round and checks that only what is missing runs.
func (w *workspace) checkResumed(path, roundID string) {
	w.t.Helper()
	before := w.Model.Stats().Requests
	r := w.must(0, "refine", path, "--resume-round", roundID, "--model", "sim/plain", "--json").round(w.t)
	if got := w.Model.Stats().Requests - before; got != 2 {
		w.t.Errorf("resuming took %d requests, want 2", got)
	}
	for _, lane := range r.Lanes {
		if lane.Status != "complete" || lane.Reused != (lane.LaneID == "verification") {
			w.t.Errorf("resumed lane %s is %s, reused %v", lane.LaneID, lane.Status, lane.Reused)
		}
	}
}

func TestASignalEndsARoundInGoodOrder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		signal syscall.Signal
		status int
	}{
		"interrupt": {syscall.SIGINT, 130}, "terminate": {syscall.SIGTERM, 143}, "hang up": {syscall.SIGHUP, 129},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, streaming()...)
			path := w.Write("PLAN.md", plan)
			j := w.start("refine", path, "--reviewers", "3", "--model", "sim/plain", "--json")
			w.Await(midStream)
			w.untilStored()
			j.Signal(tt.signal)
			e := j.wait()

			if e.Code != tt.status {
				t.Errorf("ended with %d, want %d", e.Code, tt.status)
			}
			r := e.round(t)
			want := "pilothouse: interrupted with 1 of 3 lanes complete; continue with `pilothouse refine " + path + " --resume-round " + r.RoundID + "`"
			if e.Last() != want {
				t.Errorf("last line %q, want %q", e.Last(), want)
			}
			for _, lane := range r.Lanes {
				if lane.LaneID == "verification" {
					continue
				}
				if lane.Status != "cancelled" || lane.Error.Class != "cancelled" {
					t.Errorf("lane %s is %s: %+v", lane.LaneID, lane.Status, lane.Error)
				}
			}
			w.checkCancelled(r.RunID, r.RoundID)
			w.checkResumed(path, r.RoundID)
		})
	}
}

func TestClosingTheTerminalEndsARoundInGoodOrder(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, streaming()...)
	path := w.Write("PLAN.md", plan)
	cmd := w.prepared("refine", path, "--reviewers", "3", "--model", "sim/plain").Cmd
	cmd.Stdout, cmd.Stderr = nil, nil // the terminal
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	var screen piharness.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := terminal.Read(buf)
			_, _ = screen.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	w.Await(midStream)
	w.untilStored()
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	<-read
	hung := time.AfterFunc(piharness.Patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	_ = cmd.Wait()
	hung.Stop()
	if code := cmd.ProcessState.ExitCode(); code != 129 {
		t.Errorf("ended with %d (%v), want 129", code, cmd.ProcessState)
	}
	if text := screen.String(); !strings.Contains(text, "1/3 done") && !strings.Contains(text, "running") {
		t.Errorf("the terminal showed no lanes:\n%q", text)
	}
	runID := w.runs()[0]
	roundID := w.checkpoint(runID).ReviewRounds[0].RoundID
	w.checkCancelled(runID, roundID)
	w.checkResumed(path, roundID)
}

// A kill leaves nobody who could record or end anything: the kernel and the
// guard end the children, and the next call works on from what is on disk.
func TestAKillLeavesNoChildAndTheRoundCanBeResumed(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, streaming()...)
	path := w.Write("PLAN.md", plan)
	j := w.start("refine", path, "--reviewers", "3", "--model", "sim/plain", "--json")
	w.Await(midStream)
	w.untilStored()
	j.Signal(os.Kill)
	j.wait()
	w.Await(func(s scriptedmodel.Stats) bool { return s.Open == 0 }) // the children are gone
	w.untilGone()
	runID := w.runs()[0]
	c := w.checkpoint(runID)
	for _, lane := range c.ReviewRounds[0].Lanes {
		if lane.Status == "running" {
			t.Errorf("lane %s is running", lane.LaneID)
		}
	}
	w.checkResumed(path, c.ReviewRounds[0].RoundID)
	if r := w.checkpoint(runID); r.Generation < c.Generation {
		t.Errorf("generation fell from %d to %d", c.Generation, r.Generation)
	}
}

// untilGone waits until no process of the workspace is left.
func (w *workspace) untilGone() {
	w.t.Helper()
	for len(w.Survivors()) > 0 {
		select {
		case <-w.t.Context().Done():
			w.t.Fatal("processes survived")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
