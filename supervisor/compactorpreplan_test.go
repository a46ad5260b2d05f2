package supervisor_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// tellsStart is the plans tool having started a run.
func (p *pi) tellsStart() supervisor.Reply {
	p.t.Helper()
	return p.hook("tool_result", object{"toolName": "plans", "toolCallId": "c1", "input": object{"action": "start-run"}})
}

// asksToCompact is the action of a reply that asks Pi for a compaction, nil without one.
func asksToCompact(t *testing.T, reply supervisor.Reply) *supervisor.Action {
	t.Helper()
	var found *supervisor.Action
	for i, a := range reply.Actions {
		if a.Kind == supervisor.ActionCompact {
			if found != nil {
				t.Error("two compactions are asked for")
			}
			found = &reply.Actions[i]
		}
	}
	return found
}

func TestANewRunBeginsWithOneCompactionAndTheTurnGoesOnOnce(t *testing.T) {
	t.Parallel()
	resume := "send pi-plans-preplan-resume"
	for _, test := range []struct {
		name  string
		hook  string // the report
		event object
		want  []string
		text  string // of the notice
	}{
		{"done", "session_compact", nil, []string{resume}, ""},
		{"too small", "session_compact_failed", object{"errorMessage": "Nothing to compact (session too small)"}, []string{"notify info", resume},
			"The compaction before planning was skipped: Nothing to compact (session too small)."},
		{"compacted before", "session_compact_failed", object{"errorMessage": "Already compacted"}, []string{"notify info", resume},
			"The compaction before planning was skipped: Already compacted."},
		{"aborted", "session_compact_failed", object{"errorMessage": "Compaction cancelled"}, []string{"notify info", resume},
			"The compaction before planning was skipped: Compaction cancelled."},
		{"failed without a word", "session_compact_failed", object{}, []string{"notify info", resume},
			"The compaction before planning was skipped: no reason was given."},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := setup(t).pi("s1")
			run := p.startRun()
			asked := p.tellsStart()
			if diff := cmp.Diff([]string{"entry pi-plans-run-start", "compact"}, kinds(asked)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			action := asksToCompact(t, asked)
			if action.Instructions != "pi-plans planning pre-plan compact" || action.Then != "pre-plan "+run.RunID {
				t.Errorf("asked for %+v", action)
			}
			if again := asksToCompact(t, p.tellsStart()); again != nil {
				t.Error("it is asked for again")
			}
			if got := decision(p.compacts(object{"customInstructions": action.Instructions})); got != "compaction" {
				t.Errorf("decided %s", got)
			}
			// Pi tells of the event itself too, which is not the report.
			event := object{"reason": "manual", "fromExtension": true}
			for key, value := range test.event {
				event[key] = value
			}
			for _, a := range p.hook(test.hook, event).Actions {
				if a.Kind != supervisor.ActionNotify || test.event != nil {
					t.Errorf("the event leads to %+v", a)
				}
			}
			report := object{"then": action.Then}
			for key, value := range test.event {
				report[key] = value
			}
			got := p.hook(test.hook, report)
			if diff := cmp.Diff(test.want, told(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if test.text != "" && got.Actions[0].Text != test.text {
				t.Errorf("told %q", got.Actions[0].Text)
			}
			last := got.Actions[len(got.Actions)-1]
			if !last.TriggerTurn || last.Message.Display || last.Message.Content != "Continue planning." {
				t.Errorf("resumed with %+v, %+v", last, last.Message)
			}
			if again := p.hook(test.hook, report); len(again.Actions) != 0 {
				t.Errorf("a second report: %v", told(again))
			}
		})
	}
}

func TestOnlyTheStartOfARunAsksForThatCompaction(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	if got := asksToCompact(t, p.tellsStart()); got != nil {
		t.Error("asked for without a run")
	}
	p.startRun()
	for _, event := range []object{
		{"toolName": "plans", "input": object{"action": "show"}}, {"toolName": "bash", "input": object{"action": "start-run"}},
		{"toolName": "plans", "input": object{"action": "start-run"}, "isError": true},
	} {
		if got := asksToCompact(t, p.hook("tool_result", event)); got != nil {
			t.Errorf("asked for after %v", event)
		}
	}
	if got := asksToCompact(t, p.tellsStart()); got == nil {
		t.Error("the others have used it up")
	}

	off := setup(t).pi("s1")
	off.startRun()
	off.compactionConfig(`{"prePlanCompact":false}`)
	if got := asksToCompact(t, off.tellsStart()); got != nil {
		t.Error("asked for although it is switched off")
	}

	executing, _ := setup(t).executing("s1", threeChecks)
	if got := asksToCompact(t, executing.tellsStart()); got != nil {
		t.Error("asked for while a plan is carried out")
	}
}

func TestTheTurnGoesOnWhoeverHearsOfTheCompaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pi("s1")
	run := p.startRun()
	then := asksToCompact(t, p.tellsStart()).Then
	p = b.restarted(p)
	if got := p.hook("session_compact", object{"then": then}); len(sent(got, "pi-plans-preplan-resume")) != 1 {
		t.Errorf("after a restart: %v", told(got))
	}
	if err := os.RemoveAll(filepath.Join(p.root().Dir, "runs", run.RunID)); err != nil {
		t.Fatal(err)
	}
	if got := p.hook("session_compact_failed", object{"then": then}); len(sent(got, "pi-plans-preplan-resume")) != 1 {
		t.Errorf("when the run is gone: %v", told(got))
	}
	nowhere := supervisor.Session{ID: "s1", Workdir: t.TempDir()}
	got, err := p.system.Hook(t.Context(), nowhere, "session_compact", spelled(t, object{"then": then}))
	if err != nil || len(sent(got, "pi-plans-preplan-resume")) != 1 {
		t.Errorf("where there is no repository: %v, %v", told(got), err)
	}
	other := setup(t).pi("s2")
	other.setStatus(other.startRun(), store.StatusAbandoned)
	if got := asksToCompact(t, other.tellsStart()); got != nil {
		t.Error("asked for a run that is over")
	}
}
