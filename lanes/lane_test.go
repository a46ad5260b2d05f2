package lanes_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
)

// soon is a limit that passes while a child does nothing for ever.
const soon = 20 * time.Millisecond

// end is what a lane comes to.
type end struct {
	Status   lanes.Status
	Class    pijson.Class
	Attempts int
	Turns    int
	Usage    pijson.Usage
	Output   string
	Exit     string
	Notes    []string
}

func endOf(r lanes.Result) end {
	e := end{Status: r.Status, Attempts: r.Attempts, Turns: r.Turns, Usage: r.Usage, Output: r.Output, Notes: r.Notes, Exit: r.Exit.Signal}
	if r.Error != nil {
		e.Class = r.Error.Class
	}
	if r.Exit.Code != nil {
		e.Exit += "exit status"
		if *r.Exit.Code == 0 {
			e.Exit = "success"
		}
	}
	return e
}

func TestALaneEndsAsItsChildrenDo(t *testing.T) {
	t.Parallel()
	trace := func(name string) []string { return lanestest.Trace(t, name) }
	const tooMany = `429: {"message":"Rate limit reached"}`
	tests := []struct {
		name   string
		limits lanes.Limits
		script lanestest.Script
		want   end
	}{
		{
			name:   "a recorded answer",
			script: printing(lanestest.Code(0), trace("pi-1.6.0-simple")),
			want: end{
				Status: lanes.Complete, Attempts: 1, Turns: 1, Usage: pijson.Usage{Input: 487, Output: 5, Cost: 0.001536},
				Output: "Hello world answer", Exit: "success",
			},
		},
		{
			name:   "a recorded answer of the older pi",
			script: printing(lanestest.Code(0), trace("pi-0.73.1-tools")),
			want:   end{Status: lanes.Complete, Attempts: 1, Exit: "success"},
		},
		{
			name:   "refused credentials are not tried again",
			script: printing(lanestest.Code(0), trace("pi-1.6.0-err401")),
			want:   end{Status: lanes.Failed, Class: pijson.ClassAuth, Attempts: 1, Turns: 1, Exit: "success"},
		},
		{
			name:   "a rate limit that pi gave up on is tried again until the attempts are used up",
			script: printing(lanestest.Code(0), trace("pi-1.6.0-err429-forever")),
			want:   end{Status: lanes.Failed, Class: pijson.ClassRateLimit, Attempts: 3, Turns: 12, Exit: "success"},
		},
		{
			name: "an answer after two failed attempts costs all three",
			script: inTurn(
				printing(lanestest.Code(0), lanestest.GivesUp(tooMany)),
				printing(lanestest.Code(0), lanestest.GivesUp("503 Service Unavailable")),
				answering("third time lucky"),
			),
			want: end{Status: lanes.Complete, Attempts: 3, Turns: 7, Usage: times(7), Output: "third time lucky", Exit: "success"},
		},
		{
			name:   "a child without credentials before its first event has lost a fight for a lock",
			script: inTurn(func(*lanestest.Child) proc.Exit { return proc.Exit{Code: 1, Stderr: "No API key found for sim"} }, answering("here")),
			want:   end{Status: lanes.Complete, Attempts: 2, Turns: 1, Usage: times(1), Output: "here", Exit: "success"},
		},
		{
			name:   "an answer whose child does not exit",
			limits: lanes.Limits{Drain: soon},
			script: staying(lanestest.Answer("done")),
			want: end{
				Status: lanes.Complete, Attempts: 1, Turns: 1, Usage: times(1), Output: "done", Exit: "exit status",
				Notes: []string{"did not exit by itself"},
			},
		},
		{
			name:   "an answer after which nothing comes at all",
			limits: lanes.Limits{Drain: soon},
			script: staying(lanestest.Opening(), lanestest.Says("done")),
			want: end{
				Status: lanes.Complete, Attempts: 1, Turns: 1, Usage: times(1), Output: "done", Exit: "exit status",
				Notes: []string{"did not exit by itself"},
			},
		},
		{
			name:   "a failure whose child does not exit",
			limits: lanes.Limits{Drain: soon},
			script: staying(trace("pi-1.6.0-err401")),
			want:   end{Status: lanes.Failed, Class: pijson.ClassAuth, Attempts: 1, Turns: 1, Exit: "exit status"},
		},
		{
			name:   "a child that says nothing",
			limits: lanes.Limits{FirstEvent: soon, Attempts: 1},
			script: staying(),
			want:   end{Status: lanes.Failed, Class: pijson.ClassNoFirstEvent, Attempts: 1, Exit: "exit status"},
		},
		{
			name:   "a child that says nothing more",
			limits: lanes.Limits{Silence: soon, Attempts: 1},
			script: staying(lanestest.Opening()),
			want:   end{Status: lanes.Failed, Class: pijson.ClassSilent, Attempts: 1, Exit: "exit status"},
		},
		{
			name:   "a lane that takes too long is not tried again",
			limits: lanes.Limits{Lane: soon},
			script: staying(lanestest.Opening()),
			want:   end{Status: lanes.Failed, Class: pijson.ClassTimedOut, Attempts: 1, Exit: "exit status"},
		},
		{
			name:   "a stdout that is closed before anything came",
			limits: lanes.Limits{Drain: soon},
			script: func(c *lanestest.Child) proc.Exit {
				c.CloseStdout()
				c.AwaitEnd()
				return lanestest.Killed("SIGKILL", 9)
			},
			want: end{Status: lanes.Failed, Class: pijson.ClassEmpty, Attempts: 1, Exit: "SIGKILL"},
		},
		{
			name:   "a stdout that is closed after the answer",
			limits: lanes.Limits{Drain: soon},
			script: func(c *lanestest.Child) proc.Exit {
				c.Print(lanestest.Answer("done")...)
				c.CloseStdout()
				c.AwaitEnd()
				return lanestest.Code(143)
			},
			want: end{
				Status: lanes.Complete, Attempts: 1, Turns: 1, Usage: times(1), Output: "done", Exit: "exit status",
				Notes: []string{"did not exit by itself"},
			},
		},
		{
			name:   "a child that was killed in the middle of its work",
			limits: lanes.Limits{Attempts: 1},
			script: printing(lanestest.Killed("SIGKILL", 9), lanestest.Opening(), lanestest.Uses("read")),
			want:   end{Status: lanes.Failed, Class: pijson.ClassKilled, Attempts: 1, Turns: 1, Usage: times(1), Exit: "SIGKILL"},
		},
		{
			name: "a killed child is replaced",
			script: inTurn(
				printing(lanestest.Killed("SIGKILL", 9), lanestest.Opening(), lanestest.Streams("hal")),
				answering("whole"),
			),
			want: end{Status: lanes.Complete, Attempts: 2, Turns: 1, Usage: times(1), Output: "whole", Exit: "success"},
		},
		{
			name:   "what was said before the kill is kept",
			limits: lanes.Limits{Attempts: 1},
			script: printing(lanestest.Killed("SIGKILL", 9), lanestest.Opening(), lanestest.Streams("half of it")),
			want:   end{Status: lanes.Failed, Class: pijson.ClassKilled, Attempts: 1, Output: "half of it", Exit: "SIGKILL"},
		},
		{
			name:   "more turns than allowed",
			limits: lanes.Limits{Turns: 3},
			script: staying(lanestest.Opening(), lanestest.Uses("read"), lanestest.Uses("grep"), lanestest.Uses("find"), lanestest.Uses("ls")),
			want:   end{Status: lanes.Failed, Class: pijson.ClassBudget, Attempts: 1, Turns: 4, Usage: times(4), Exit: "exit status"},
		},
		{
			name:   "the turns of all attempts count",
			limits: lanes.Limits{Turns: 4},
			script: inTurn(
				printing(lanestest.Code(0), lanestest.GivesUp(tooMany)),
				staying(lanestest.Opening(), lanestest.Uses("read"), lanestest.Uses("read")),
			),
			want: end{Status: lanes.Failed, Class: pijson.ClassBudget, Attempts: 2, Turns: 5, Usage: times(5), Exit: "exit status"},
		},
		{
			name:   "an exit without a word",
			script: printing(lanestest.Code(0)),
			want:   end{Status: lanes.Failed, Class: pijson.ClassEmpty, Attempts: 1, Exit: "success"},
		},
		{
			name:   "a tool outside the list",
			script: printing(lanestest.Code(0), lanestest.Opening(), lanestest.Uses("bash"), lanestest.Says("fine"), lanestest.Closing()),
			want:   end{Status: lanes.Failed, Class: pijson.ClassProtocol, Attempts: 1, Turns: 2, Usage: times(2), Output: "fine", Exit: "success"},
		},
		{
			name: "a stream that cannot be read",
			script: func(c *lanestest.Child) proc.Exit {
				c.Print(lanestest.Opening()...)
				c.ReadError = errors.New("the pipe is broken")
				c.CloseStdout()
				c.AwaitEnd()
				return lanestest.Killed("SIGTERM", 15)
			},
			want: end{Status: lanes.Failed, Class: pijson.ClassInternal, Attempts: 1, Exit: "SIGTERM"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			host := lanestest.NewHost(t, test.script)
			got := endOf(theResult(t, begin(t, host, nil, limited("general", test.limits))))
			if strings.Contains(test.name, "older pi") { // its numbers are pijson's business
				got.Turns, got.Usage, got.Output = 0, pijson.Usage{}, ""
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if host.Alive() != 0 {
				t.Error("the batch ended before its children")
			}
		})
	}
}

func TestALaneWhoseChildCannotBeStartedSaysWhy(t *testing.T) {
	t.Parallel()
	missing := &proc.StartError{Path: "/opt/pi", Reason: "no such file or directory", Err: syscall.ENOENT}
	short := &proc.StartError{Path: "/opt/pi", Reason: "the limit on processes is reached (ulimit -u)", Err: syscall.EAGAIN}
	tests := []struct {
		name     string
		fails    int // so many starts
		err      error
		status   lanes.Status
		class    pijson.Class
		says     string
		attempts int
	}{
		{"a program that is not there", 9, missing, lanes.Failed, pijson.ClassStartFailure, missing.Error(), 1},
		{"a command that makes no sense", 9, &lanes.CommandError{Words: "pj", Reason: "it is gone"}, lanes.Failed, pijson.ClassStartFailure, `"pj": it is gone`, 1},
		{"a machine that is short of processes for a while", 2, short, lanes.Complete, "", "", 3},
		{"a machine that is short of processes", 9, short, lanes.Failed, pijson.ClassStartFailure, short.Error(), 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			host := lanestest.NewHost(t, answering("at last"))
			host.Before = func(_ context.Context, _ lanes.Spec, number int) error {
				if number <= test.fails {
					return test.err
				}
				return nil
			}
			r := theResult(t, begin(t, host, nil, spec("general")))
			if r.Status != test.status || r.Attempts != test.attempts || host.Starts("general") != test.attempts {
				t.Errorf("status %s after %d attempts and %d starts, want %s after %d", r.Status, r.Attempts, host.Starts("general"), test.status, test.attempts)
			}
			if test.status == lanes.Complete {
				return
			}
			if r.Error.Class != test.class || !strings.Contains(r.Error.Message, test.says) {
				t.Errorf("error %+v, want class %s and a text with %q", r.Error, test.class, test.says)
			}
			if r.Exit.Code != nil || r.Exit.Signal != "" {
				t.Errorf("exit %+v of a child that never was", r.Exit)
			}
		})
	}
}

func TestAStartThatHangsEndsWithTheLanesTime(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, answering("never"))
	host.Before = func(ctx context.Context, _ lanes.Spec, _ int) error {
		<-ctx.Done()
		return ctx.Err()
	}
	r := theResult(t, begin(t, host, nil, limited("general", lanes.Limits{Lane: soon})))
	if r.Status != lanes.Failed || r.Error.Class != pijson.ClassTimedOut {
		t.Errorf("got %s %+v, want a lane that ran out of time", r.Status, r.Error)
	}
}

func TestALaneFeedsItsTaskAndTracesItsChild(t *testing.T) {
	t.Parallel()
	tasks := make(chan string, 1)
	host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit {
		task, _ := c.Task()
		tasks <- task
		c.Print(lanestest.Answer("ok")...)
		return lanestest.Code(0)
	})
	stage := lanestest.Play(t, lanes.NewBatch([]lanes.Spec{spec("general")}, host), nil)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	stage.SendTo(t, "lane-general", lanestest.Traced(lanes.Begin{}, parent))
	r := theResult(t, stage)
	if task := <-tasks; task != "Task: general" {
		t.Errorf("the child was fed %q", task)
	}
	if got := host.Children()[0].Traceparent; got != parent {
		t.Errorf("the child's trace is %q, want %q", got, parent)
	}
	if r.Started.IsZero() || r.Duration <= 0 || r.Model != "plain" || r.LaneID != "general" {
		t.Errorf("the record lacks when, how long, which model or which lane: %+v", r)
	}
}

func TestALaneTellsWhatItIsDoing(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, inTurn(printing(lanestest.Code(0), lanestest.GivesUp("503 Service Unavailable")), holding("done")))
	stage := begin(t, host, nil, spec("general"))
	lanestest.Await(t, stage, func(p lanes.Progress) bool { return p.Phase == "starting" && p.Attempt == 1 && p.Turns == 0 })
	lanestest.Await(t, stage, func(p lanes.Progress) bool {
		return strings.HasPrefix(p.Phase, "waiting: server, next attempt in ") && p.Attempt == 1 && p.Turns == 3 && p.Usage == times(3)
	})
	host.Next(t, "general")
	second := host.Next(t, "general")
	second.At(t, "work")
	got := lanestest.Await(t, stage, func(p lanes.Progress) bool { return p.Attempt == 2 && p.Turns == 4 })
	want := lanes.Progress{
		LaneID: "general", Status: lanes.Running, Phase: got.Phase, Tool: got.Tool, Attempt: 2, Turns: 4, Usage: times(4), Model: "plain", Elapsed: got.Elapsed,
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Elapsed <= 0 {
		t.Errorf("elapsed %v, %s", got.Elapsed, diff)
	}
	second.Release("work")
	theResult(t, stage)
}
