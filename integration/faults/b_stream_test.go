package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
)

// Section B: the event stream.

func TestFaultB24ALongLineHidesNothingThatFollowsIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	const head, foot = `{"type":"tool_execution_end","toolCallId":"c1","toolName":"read","result":{"content":[{"type":"text","text":"`, `"}]},"isError":false}`
	path := s.file("lines", strings.Join(lanestest.Join(lanestest.Opening(), lanestest.Uses("read")), "\n")+"\n")
	lines, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	piece := strings.Repeat("x", 1<<20)
	for _, pieces := range []int{3, 70} {
		fmt.Fprint(lines, head)
		for range pieces {
			fmt.Fprint(lines, piece)
		}
		fmt.Fprintln(lines, foot)
	}
	fmt.Fprintln(lines, strings.Join(lanestest.Join(lanestest.Says(report), lanestest.Closing()), "\n"))
	if err := lines.Close(); err != nil {
		t.Fatal(err)
	}
	s.stub("--lines", path)
	j := s.refine()
	peak := j.peakMemory()
	lane := j.wait().complete(report)
	if lane.Turns != 2 || lane.Usage.Cost != 2*lanestest.Cost.Cost {
		t.Errorf("%d turns for %v dollars", lane.Turns, lane.Usage.Cost)
	}
	t.Logf("the peak of memory was %d MiB", peak>>20)
	if peak > 100<<20 { // less than with the line in it
		t.Error("that is too much")
	}
}

func TestFaultB25ALineSeparatorInATextIsText(t *testing.T) {
	t.Parallel()
	const text = report + "\n- a\u2028b\u2029c"
	lines := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.Join(lanestest.Answer(text), "\n"))
	stubScene(t, prints(t, lines)...).refine().wait().complete(text)
	generations(t, func(t *testing.T, pi piharness.Command) {
		piScene(t, pi, on(anyTask, says(text))).refine().wait().complete(text)
	})
}

func TestFaultB26ACharacterCutBetweenTwoWritesStaysWhole(t *testing.T) {
	t.Parallel()
	const text = report + "\n- é and 🥖"
	message := lanestest.Says(text)
	s := stubScene(t, append(prints(t, lanestest.Opening()[0], message[len(message)-1]), "--chunk", "1", "--pause", "2ms")...)
	s.refine().wait().complete(text)
}

func TestFaultB28NoiseIsToleratedAndCounted(t *testing.T) {
	t.Parallel()
	answer := lanestest.Answer(report)
	noise := []string{"warning: foo", "null", "[]", `"x"`, `{"type":7}`, `{}`}
	lines := lanestest.Join([]string{"\uFEFF" + answer[0] + "\r"}, noise, answer[1:4], []string{strings.Repeat("\n", 1<<20)}, answer[4:len(answer)-1])
	s := newScene(t, t.TempDir())
	s.stub("--lines", s.file("lines", strings.Join(lines, "\n")+"\n"+answer[len(answer)-1])) // no newline at the end
	lane := s.refine().wait().complete(report)
	if want := strconv.Itoa(len(noise)) + " lines on standard output were no events"; len(lane.Notes) != 1 || lane.Notes[0] != want {
		t.Errorf("notes %q, want %q", lane.Notes, want)
	}
}

func TestFaultB30TheReasonsOfProvidersAreToldApart(t *testing.T) {
	t.Parallel()
	for _, vendor := range []struct {
		status int
		text   string
		class  pijson.Class
	}{
		{401, "Incorrect API key provided", pijson.ClassAuth},
		{402, "Insufficient Balance", pijson.ClassBilling},
		{429, "", pijson.ClassRateLimit},
		{529, "Overloaded", pijson.ClassOverloaded},
		{400, "This model's maximum context length is 8192 tokens", pijson.ClassContextOverflow},
		{403, "You have hit your usage limit reached for today", pijson.ClassBilling},
		{418, "I am a teapot", pijson.ClassUnknown},
	} {
		name := strconv.Itoa(vendor.status)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("stub", func(t *testing.T) {
				t.Parallel()
				text := strings.TrimSpace(name + " " + vendor.text)
				s := stubScene(t, prints(t, lanestest.Join(lanestest.Opening(), lanestest.Fails(text), lanestest.Closing())...)...)
				s.refine("--attempts", "1").wait().failed(vendor.class, text)
			})
			t.Run("new pi", func(t *testing.T) {
				t.Parallel()
				step := scriptedmodel.Step{Status: vendor.status, Message: vendor.text}
				if vendor.text == "" {
					step.Body = " "
				}
				piScene(t, piharness.NewPi(t), on(anyTask, step)).refine("--attempts", "1").wait().failed(vendor.class, vendor.text)
			})
		})
	}
}

func TestFaultB31AFloodOnStandardErrorHoldsNothingUp(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	s.stub("--stderr", strconv.Itoa(1<<30), "--stderr-lines", s.file("words", "the last words\n"), "--then", "exit 1")
	j := s.refine()
	peak := j.peakMemory()
	lane := j.wait().failed(pijson.ClassStartFailure, "the last words")
	if !strings.HasSuffix(lane.Stderr, "the last words\n") || len(lane.Stderr) > 64<<10 {
		t.Errorf("%d bytes of standard error are kept, which end in %.100q", len(lane.Stderr), lane.Stderr[max(0, len(lane.Stderr)-100):])
	}
	t.Logf("the peak of memory was %d MiB", peak>>20)
	if peak > 100<<20 {
		t.Error("that is too much")
	}
}

func TestFaultB32ALongToolCallLeavesNothingToAttendTo(t *testing.T) {
	t.Parallel()
	run := lanestest.Join(lanestest.Opening(), lanestest.Uses("read"), lanestest.Says(report), lanestest.Closing())
	call := len(lanestest.Opening()) + 2 // the tool has started
	before, after := strings.Join(run[:call], "\n")+"\n", strings.Join(run[call:], "\n")+"\n"
	before = strings.Repeat("\n", max(0, len(after)-len(before))) + before // blank lines: the rest is one piece
	s := newScene(t, t.TempDir())
	s.stub("--lines", s.file("lines", before+after), "--chunk", strconv.Itoa(len(before)), "--pause", "2s")
	j := s.refine("--silence-timeout", "30s")
	s.eventually("the call of the tool is shown", func() bool { return strings.Contains(j.Stderr.String(), "tool: read") })
	o := j.wait()
	o.complete(report)
	for _, word := range []string{"warning", "attention", "silent"} {
		if strings.Contains(o.Stderr, word) {
			t.Errorf("there is still something to attend to:\n%s", o.Stderr)
		}
	}
	// What the progress names can be looked up.
	_, id, _ := strings.Cut(o.Stderr, "· run ")
	id, _, _ = strings.Cut(id, " ")
	if shown := s.command("show", id).start().wait(); shown.Code != 0 || !strings.Contains(shown.Stdout, filepath.Base(*o.lane("general").ResultFile)) {
		t.Errorf("show %s ended with %d:\n%s%s", id, shown.Code, shown.Stdout, shown.Stderr)
	}
}
