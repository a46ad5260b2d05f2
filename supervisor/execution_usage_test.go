package supervisor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// spends is a turn of the agent that only costs tokens.
func (p *pi) spends(in, out int) supervisor.Reply {
	p.t.Helper()
	return p.hook("turn_end", object{"text": "still at it", "stopReason": "toolUse", "usage": object{"input": in, "output": out}})
}

// spendsBefore checks that tokens are on record when something has happened, and not before.
func (b *bundle) spendsBefore(next func(*pi)) {
	b.t.Helper()
	b.commit()
	p, run := b.executing("s1", threeChecks)
	before := b.checkpoint(run)
	p.spends(1200, 30)
	last := p.spends(300, 4)
	says(b.t, line(last), "1.5k in-toks · 34 out-toks")
	if now := b.checkpoint(run); now.Revision != before.Revision {
		b.t.Errorf("turns that only cost tokens have written revision %d after %d", now.Revision, before.Revision)
	}
	next(p)
	if got := b.checkpoint(run).Execution.Usage; got.InToks != 1500 || got.OutToks != 34 {
		b.t.Errorf("%d and %d tokens are on record", got.InToks, got.OutToks)
	}
}

func TestADaemonThatEndsWritesTheTokens(t *testing.T) {
	t.Parallel()
	system, err := supervisor.New(supervisor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{t: t, system: system, session: newSession(t)}
	b.spendsBefore(func(*pi) {
		if err := system.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestTurnsThatOnlyCostTokensAreWrittenWithWhatComesNext(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(*pi){
		"a report":           func(p *pi) { p.says("[DONE:VC-001]") },
		"a rest":             func(p *pi) { p.settles(nil) },
		"a rest, unattended": func(p *pi) { p.settles(object{"hasUI": false}) },
		"a pause":            func(p *pi) { p.settles(object{"wakeFailed": "no model"}) },
		"a stop":             func(p *pi) { p.command("plans-stop", "", p.inTurn(confirm(true))) },
		"a revision":         func(p *pi) { p.command("update-plan", "", p.inTurn(confirm(true))) },
		"the end of the run": func(p *pi) { p.command("plans-abandon", "", p.inTurn(confirm(true))) },
		"the end of Pi":      func(p *pi) { p.hook("session_shutdown", object{"reason": "quit"}) },
		"a new session":      func(p *pi) { p.hook("session_shutdown", object{"reason": "new"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setup(t).spendsBefore(next)
		})
	}
}

func TestTokensDoNotWaitForEverAndAreCountedOnce(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	b := setupWith(t, supervisor.Options{Now: func() time.Time {
		return time.Date(2026, 8, 25, 13, 0, 0, 0, time.UTC).Add(time.Duration(later.Load()))
	}})
	b.commit()
	p, run := b.executing("s1", threeChecks)
	usage := func() store.TokenUsage { return b.checkpoint(run).Execution.Usage }
	p.spends(10, 1)
	later.Store(int64(29 * time.Second))
	p.spends(10, 1)
	if got := usage(); got.InToks != 0 {
		t.Errorf("%d tokens written at once", got.InToks)
	}
	later.Store(int64(30 * time.Second))
	p.spends(10, 1)
	if got := usage(); got.InToks != 30 || got.OutToks != 3 {
		t.Errorf("after a while %+v", got)
	}
	p.spends(10, 1)
	p.settles(nil)
	p.settles(nil)
	again := b.restarted(p)
	again.spends(10, 1)
	again.settles(nil)
	if got := usage(); got.InToks != 50 || got.OutToks != 5 {
		t.Errorf("in the end %+v", got)
	}
}
