package lanes_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
	"pilothouse/lanes/rpc"
)

// listener keeps what a session tells.
type listener struct {
	mu     sync.Mutex
	turns  []lanes.Turn
	rests  chan lanes.Rested
	during int // progress reports
}

func newListener() *listener { return &listener{rests: make(chan lanes.Rested, 16)} }

func (l *listener) hear(event any) {
	switch event := event.(type) {
	case lanes.Turn:
		l.mu.Lock()
		l.turns = append(l.turns, event)
		l.mu.Unlock()
	case lanes.Rested:
		l.rests <- event
	case lanes.Progress:
		l.mu.Lock()
		l.during++
		l.mu.Unlock()
	}
}

func (l *listener) rest(t *testing.T) lanes.Rested {
	t.Helper()
	select {
	case rested := <-l.rests:
		return rested
	case <-time.After(time.Minute):
		t.Fatal("the session does not come to rest")
		return lanes.Rested{}
	}
}

func open(t *testing.T, host *lanestest.Host, limits lanes.Limits) (*lanes.Session, *listener) {
	t.Helper()
	heard := newListener()
	session, err := lanes.OpenSession(context.Background(), host, limited("executor", limits), heard.hear, nil)
	if err != nil {
		t.Fatal(err)
	}
	return session, heard
}

func TestASessionIsTalkedToAgainAndAgain(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, lanestest.Conversing(func(prompt string) []string {
		return lanestest.Join(lanestest.Opening(), lanestest.Uses("bash"), []string{`{"type":"turn_end"}`, `{"type":"turn_start"}`}, lanestest.Says("about "+prompt), lanestest.Closing())
	}))
	session, heard := open(t, host, lanes.Limits{})
	for _, prompt := range []string{"one", "two"} {
		if err := session.Prompt(context.Background(), prompt); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(lanes.Rested{StopReason: "stop"}, heard.rest(t)); diff != "" {
			t.Error(diff)
		}
	}
	session.End()
	end := session.Wait()
	code := 0
	want := lanes.SessionEnd{Exit: lanes.Exit{Code: &code}, Model: "plain", Turns: 4, Usage: times(4)}
	if diff := cmp.Diff(want, end); diff != "" {
		t.Error(diff)
	}
	work := lanes.Turn{StopReason: "toolUse", ToolCalls: 1, Usage: lanestest.Cost}
	says := func(text string) lanes.Turn { return lanes.Turn{Text: text, StopReason: "stop", Usage: lanestest.Cost} }
	if diff := cmp.Diff([]lanes.Turn{work, says("about one"), work, says("about two")}, heard.turns); diff != "" {
		t.Error(diff)
	}
	if err := session.Prompt(context.Background(), "three"); !errors.Is(err, rpc.ErrGone) {
		t.Errorf("after its end: %v, want %v", err, rpc.ErrGone)
	}
}

func TestAnOlderPiThatDoesNotSayWhenItRestsIsGivenAMoment(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, lanestest.Conversing(func(string) []string {
		return lanestest.Join(lanestest.Opening(), lanestest.Says("done"), []string{`{"type":"agent_end","messages":[]}`})
	}))
	session, heard := open(t, host, lanes.Limits{Drain: time.Millisecond})
	if err := session.Prompt(context.Background(), "work"); err != nil {
		t.Fatal(err)
	}
	if rested := heard.rest(t); rested.StopReason != "stop" {
		t.Errorf("rested with %+v", rested)
	}
	session.Cancel("enough")
	session.Wait()
}

func TestASessionThatBeginsByItselfTellsOfItsRestAgain(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, lanestest.Conversing(func(string) []string {
		return lanestest.Join(
			lanestest.Opening(), lanestest.Says("asked"), lanestest.Closing(),
			lanestest.Opening(), lanestest.Says("sent on its way by an extension"), lanestest.Closing(),
		)
	}))
	session, heard := open(t, host, lanes.Limits{})
	if err := session.Prompt(context.Background(), "work"); err != nil {
		t.Fatal(err)
	}
	heard.rest(t)
	heard.rest(t)
	if session.Working() {
		t.Error("it is at work after its second rest")
	}
	session.End()
	if end := session.Wait(); end.Error != nil || end.Turns != 2 {
		t.Errorf("ended with %+v", end)
	}
}

func TestHowASessionEndsIsTold(t *testing.T) {
	t.Parallel()
	prompted := func(then func(c *lanestest.Child) proc.Exit) lanestest.Script {
		return func(c *lanestest.Child) proc.Exit {
			command, ok := c.Command()
			if !ok {
				return lanestest.Code(143)
			}
			c.Accept(command)
			c.Print(lanestest.Opening()...)
			return then(c)
		}
	}
	silent := func(c *lanestest.Child) proc.Exit { c.AwaitEnd(); return lanestest.Code(143) }
	for name, test := range map[string]struct {
		script lanestest.Script
		limits lanes.Limits
		end    func(*lanes.Session)
		class  pijson.Class
		words  string
	}{
		"cancelled":             {prompted(silent), lanes.Limits{}, func(s *lanes.Session) { s.Cancel("enough") }, pijson.ClassCancelled, "enough"},
		"killed from outside":   {prompted(func(*lanestest.Child) proc.Exit { return lanestest.Killed("SIGKILL", 9) }), lanes.Limits{}, nil, pijson.ClassKilled, "SIGKILL"},
		"out of time":           {prompted(silent), lanes.Limits{Lane: time.Millisecond}, nil, pijson.ClassTimedOut, "time"},
		"silent for too long":   {prompted(silent), lanes.Limits{Silence: time.Millisecond}, nil, pijson.ClassSilent, "nothing for too long"},
		"silent from the start": {func(c *lanestest.Child) proc.Exit { c.AwaitEnd(); return lanestest.Code(143) }, lanes.Limits{FirstEvent: time.Millisecond}, nil, pijson.ClassNoFirstEvent, "no event"},
		"beyond its budget": {
			prompted(func(c *lanestest.Child) proc.Exit { c.Print(lanestest.Uses("bash")...); return silent(c) }),
			lanes.Limits{Cost: 0.1}, nil, pijson.ClassBudget, "0.25 of 0.10 dollars",
		},
		"gone after an answer": {
			prompted(func(c *lanestest.Child) proc.Exit {
				c.Print(lanestest.Join(lanestest.Says("done"), lanestest.Closing())...)
				return lanestest.Code(3)
			}), lanes.Limits{}, nil, pijson.ClassUnknown, "exit status 3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session, _ := open(t, lanestest.NewHost(t, test.script), test.limits)
			_ = session.Prompt(context.Background(), "work") // may be overtaken by the end
			if test.end != nil {
				test.end(session)
			}
			end := session.Wait()
			if end.Error == nil || end.Error.Class != test.class || !strings.Contains(end.Error.Message, test.words) {
				t.Errorf("ended with %+v, want %s with %q", end.Error, test.class, test.words)
			}
		})
	}
}

func TestAMessageThatPiRefusesIsTold(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit {
		for {
			command, ok := c.Command()
			if !ok {
				return lanestest.Code(0)
			}
			c.Refuse(command, "Agent is already processing.")
		}
	})
	session, _ := open(t, host, lanes.Limits{})
	var refused *rpc.RefusedError
	if err := session.Prompt(context.Background(), "x"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "already processing") {
		t.Errorf("got %v", err)
	}
	session.End()
	if end := session.Wait(); end.Error != nil {
		t.Errorf("ended with %+v", end.Error)
	}
}

func TestASessionThatDoesNotLeaveIsEnded(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit { c.AwaitEnd(); return lanestest.Code(143) })
	session, _ := open(t, host, lanes.Limits{Drain: time.Millisecond})
	session.End()
	end := session.Wait()
	if end.Error != nil || len(end.Notes) != 1 || end.Notes[0] != "it did not leave by itself" {
		t.Errorf("ended with %+v", end)
	}
}

func TestASessionWaitsForItsPlaceAndLeavesTheQueueWhenItIsNotWanted(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, lanestest.Conversing(lanestest.Answer))
	host.Full = true
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("not wanted")
	cancel(why)
	if _, err := lanes.OpenSession(ctx, host, spec("executor"), newListener().hear, nil); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	if host.Starts("executor") != 0 {
		t.Error("a child was started")
	}
}

func TestASessionThatCannotBeStartedGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	broken := errors.New("no pi")
	host := lanestest.NewHost(t, nil)
	host.Before = func(context.Context, lanes.Spec, int) error { return broken }
	if _, err := lanes.OpenSession(context.Background(), host, spec("executor"), newListener().hear, nil); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// What a session waits for at rest may need its place, see Session.
func TestASessionHasAPlaceOnlyWhileItWorks(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, lanestest.Conversing(func(prompt string) []string {
		return lanestest.Answer("about " + prompt)
	}))
	session, heard := open(t, host, lanes.Limits{})
	if n := host.Places(); n != 0 {
		t.Errorf("an open session has %d places", n)
	}
	for _, prompt := range []string{"one", "two"} {
		if err := session.Prompt(context.Background(), prompt); err != nil {
			t.Fatal(err)
		}
		heard.rest(t)
		if n := host.Places(); n != 0 {
			t.Errorf("a session at rest has %d places", n)
		}
	}
	session.End()
	session.Wait()
}

func TestAMessageWaitsForAPlace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ends func(session *lanes.Session, cancel context.CancelFunc)
		want error
	}{
		"until it is given up":      {func(_ *lanes.Session, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"until the session is over": {func(s *lanes.Session, _ context.CancelFunc) { s.Cancel("enough") }, rpc.ErrGone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := full(t, lanestest.Conversing(func(prompt string) []string { return lanestest.Answer("about " + prompt) }))
			waits := make(chan lanes.Progress, 4)
			type opened struct {
				session *lanes.Session
				err     error
			}
			opening := make(chan opened)
			go func() {
				session, err := lanes.OpenSession(context.Background(), host, spec("executor"), func(event any) {
					if p, ok := event.(lanes.Progress); ok && p.Status == lanes.Queued {
						waits <- p
					}
				}, nil)
				opening <- opened{session, err}
			}()
			host.Grant(t) // for the start
			o := <-opening
			if o.err != nil {
				t.Fatal(o.err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			prompted := make(chan error)
			go func() { prompted <- o.session.Prompt(ctx, "one") }()
			if p := <-waits; p.Phase != lanes.PhaseQueued {
				t.Errorf("it waits in the phase %q", p.Phase)
			}
			test.ends(o.session, cancel)
			if err := <-prompted; !errors.Is(err, test.want) {
				t.Errorf("the message came to %v, want %v", err, test.want)
			}
			o.session.End()
			o.session.Wait()
			if n := host.Places(); n != 0 {
				t.Errorf("%d places are left", n)
			}
		})
	}
}
