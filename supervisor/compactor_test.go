package supervisor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"pilothouse/lanes/lanestest"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// said is a message in a session.
func said(id, role, text string) object {
	return object{"id": id, "type": "message", "message": object{"role": role, "content": []object{{"type": "text", "text": text}}}}
}

// longSession is a session of some turns.
func longSession() (entries []object) {
	for i := range 4 {
		entries = append(entries, said(fmt.Sprintf("u-%d", i), "user", fmt.Sprintf("Fix the parser, part %d", i)), said(fmt.Sprintf("a-%d", i), "assistant", "done"))
	}
	return entries
}

// compacts is Pi about to compact a long session.
func (p *pi) compacts(more object) supervisor.Reply {
	p.t.Helper()
	event := object{"branchEntries": longSession(), "preparation": object{"tokensBefore": 50_000}, "reason": "manual", "willRetry": false}
	for key, value := range more {
		event[key] = value
	}
	return p.hook("session_before_compact", event)
}

// compacted is Pi having done so.
func (p *pi) compacted(more object) supervisor.Reply {
	p.t.Helper()
	event := object{"reason": "manual", "willRetry": false, "fromExtension": true}
	for key, value := range more {
		event[key] = value
	}
	return p.hook("session_compact", event)
}

// decision is what a reply decides about a compaction, and why.
func decision(reply supervisor.Reply) string {
	if reply.Compaction == nil {
		return "none"
	}
	return strings.TrimSpace(reply.Compaction.Action + " " + reply.Compaction.Reason)
}

// summary is the compaction of a reply.
func summary(t *testing.T, reply supervisor.Reply) (c struct {
	Summary, FirstKeptEntryID string
	Details                   struct{ Phase string }
}) {
	t.Helper()
	if reply.Compaction == nil || reply.Compaction.Action != "compaction" {
		t.Fatalf("decided %q", decision(reply))
	}
	if err := json.Unmarshal(reply.Compaction.Compaction, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// compactionConfig replaces the settings of a session's workspace.
func (p *pi) compactionConfig(text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.root().Dir, "pi-vcc-config.json"), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func TestCompactionsAreOnlyOursWhileThereIsAPlanAtWork(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	if got := decision(p.compacts(nil)); got != "none" {
		t.Errorf("without a run: %s", got)
	}
	run := p.startRun()
	if got := decision(p.compacts(nil)); got != "compaction" {
		t.Errorf("while planning: %s", got)
	}
	p.compacted(nil)
	p.setStatus(run, store.StatusAccepted)
	if got := decision(p.compacts(nil)); got != "none" {
		t.Errorf("after the plan was accepted: %s", got)
	}
	if got := kinds(p.compacted(nil)); got != nil {
		t.Errorf("a compaction of Pi's own: %v", got)
	}
}

func TestASummaryTellsWhatTheSessionWorksOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	planner := b.pi("planner")
	run := planner.startRun()
	got := summary(t, planner.compacts(nil))
	if got.Details.Phase != "planning" || !strings.Contains(got.Summary, "- Continue planning run "+run.RunID) || !strings.Contains(got.Summary, "- Artifact directory: ") {
		t.Errorf("planning: %+v", got)
	}
	if _, err := os.Stat(filepath.Join(planner.root().Dir, "pi-vcc-config.json")); err != nil {
		t.Errorf("the settings are not there: %v", err)
	}

	executor, executed := setup(t).executing("executor", threeChecks)
	executor.says("[I-2:current] [DONE:VC-001]")
	got = summary(t, executor.compacts(nil))
	record, err := executed.Load()
	if err != nil {
		t.Fatal(err)
	}
	latest, _, err := store.LatestPlan(record.ArtifactDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"- Execute accepted plan " + latest, "- Current implementation item: I-2", "- Remaining verification: VC-002, VC-003", "- Implementation items: I-1, I-2"} {
		if !strings.Contains(got.Summary, want) {
			t.Errorf("%q is not in\n%s", want, got.Summary)
		}
	}
	if got.Details.Phase != "execution" {
		t.Errorf("phase %q", got.Details.Phase)
	}
}

func TestADecisionTellsItsUserOnlyWhyThereIsNone(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	p.startRun()
	few := longSession()[:2]
	for _, test := range []struct {
		config string
		more   object
		want   string
	}{
		{`{}`, object{"branchEntries": few}, "cancel too few messages to compact"},
		{`{}`, object{"branchEntries": []object{}}, "cancel nothing to compact"},
		{`{}`, object{"branchEntries": few, "reason": "overflow", "willRetry": true}, "fallback"},
		{`{"overrideDefaultCompaction":false}`, nil, "fallback"},
		{`{"overrideDefaultCompaction":false}`, object{"customInstructions": "pi-plans planning auto compact"}, "compaction"},
		{`{ invalid`, nil, "compaction"},
	} {
		p.compactionConfig(test.config)
		if got := decision(p.compacts(test.more)); got != test.want {
			t.Errorf("%s %v: %s, want %s", test.config, test.more, got, test.want)
		}
		failed := p.hook("session_compact_failed", object{"errorMessage": "Compaction cancelled", "aborted": true})
		if told := len(failed.Actions) > 0; told == strings.HasPrefix(test.want, "cancel") {
			t.Errorf("%s: Pi says it was cancelled, which is told: %v", test.want, told)
		}
	}
	if _, err := p.system.Hook(t.Context(), p.Session, "session_before_compact", json.RawMessage(`{"branchEntries":7}`)); err == nil || !strings.Contains(err.Error(), "branchEntries is no array") {
		t.Errorf("an event that nobody sends: %v", err)
	}
}

func TestAfterACompactionTheSessionGoesOnAsItsUserWants(t *testing.T) {
	t.Parallel()
	old := object{"reason": "threshold", "piVersion": "0.84.3"}
	for _, test := range []struct {
		name, config string
		before       object // session_before_compact
		after        object // session_compact
		want         []string
	}{
		{"by hand", `{}`, nil, nil, []string{"notify info"}},
		{"by hand with a text to follow", `{}`, object{"customInstructions": "keep:1 Go on with the tests"}, nil, []string{"notify info", "user Go on with the tests"}},
		{"at the threshold", `{}`, object{"reason": "threshold"}, object{"reason": "threshold", "piVersion": "1.6.0"}, []string{"notify info"}},
		{"at the threshold of a Pi that does not tell", `{}`, object{"reason": "threshold"}, object{"reason": "threshold"}, []string{"notify info"}},
		{"at the threshold of an older Pi", `{}`, object{"reason": "threshold"}, old, []string{"notify info", "send pi-plans-plan-resume"}},
		{"the same where that is not wanted", `{"continueAfterThresholdCompact":false}`, object{"reason": "threshold"}, old, []string{"notify info"}},
		{"by hand in an older Pi", `{}`, nil, object{"piVersion": "0.84.3"}, []string{"notify info"}},
		{"Pi tries the turn again", `{}`, object{"reason": "overflow", "willRetry": true}, object{"reason": "overflow", "willRetry": true, "piVersion": "0.84.3"}, nil},
		{"by Pi itself", `{"overrideDefaultCompaction":false}`, nil, object{"fromExtension": false}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := setup(t).pi("s1")
			p.startRun()
			p.compactionConfig(test.config)
			p.compacts(test.before)
			got := p.compacted(test.after)
			if diff := cmp.Diff(test.want, told(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, a := range got.Actions {
				if a.Kind == supervisor.ActionSend && (!a.TriggerTurn || a.Message.Display) {
					t.Errorf("not a hidden message that lets the agent go on: %+v", a)
				}
			}
			if again := told(p.compacted(test.after)); len(again) > 0 && again[0] == "notify info" {
				t.Errorf("a second report: %v", again)
			}
		})
	}
	p, _ := setup(t).executing("s1", threeChecks)
	p.compacts(object{"reason": "threshold"})
	if diff := cmp.Diff([]string{"notify info", "send pi-plans-exec-resume"}, told(p.compacted(old))); diff != "" {
		t.Errorf("while a plan is carried out (-want +got):\n%s", diff)
	}
}

// told are the actions of a reply in short, with what they send.
func told(reply supervisor.Reply) (all []string) {
	for i, kind := range kinds(reply) {
		switch a := reply.Actions[i]; a.Kind {
		case supervisor.ActionSend:
			kind += " " + a.Message.CustomType
		case supervisor.ActionUser:
			kind += " " + a.Text
		}
		all = append(all, kind)
	}
	return all
}

func TestAFailedCompactionIsToldAndThePlanGoesOn(t *testing.T) {
	t.Parallel()
	p, run := setup(t).executing("s1", threeChecks)
	for _, test := range []struct {
		event object
		level string
		text  string
	}{
		{object{"errorMessage": "Nothing to compact (session too small)"}, "info", "Nothing was compacted: Nothing to compact (session too small)."},
		{object{"errorMessage": "Request was aborted.", "aborted": true}, "info", "The compaction was ended: Request was aborted."},
		{object{"errorMessage": "429 slow down"}, "warning", "The compaction failed: 429 slow down. It is tried again when it is next due."},
	} {
		p.compacts(nil)
		got := p.hook("session_compact_failed", test.event)
		if len(got.Actions) != 1 || got.Actions[0].Level != test.level || got.Actions[0].Text != test.text {
			t.Errorf("%v: %+v", test.event, got.Actions)
		}
	}
	if status := runStatus(t, run); status != store.StatusExecuting {
		t.Errorf("the run is %s", status)
	}
	if got := decision(p.compacts(nil)); got != "compaction" {
		t.Errorf("the next one: %s", got)
	}
}

func TestADaemonThatCameInBetweenStillCompactsAndForgetsNoFollowUpOfItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pi("s1")
	p.startRun()
	p = b.restarted(p) // its run is nobody's now
	if got := decision(p.compacts(object{"customInstructions": "Go on"})); got != "compaction" {
		t.Fatalf("decided %s", got)
	}
	if diff := cmp.Diff([]string{"notify info", "user Go on"}, told(p.compacted(nil))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(p.root().Dir, "runs", p.active(), "owner.json")); err == nil {
		t.Error("a compaction has taken the run")
	}
}

// active is the run that the workspace points to.
func (p *pi) active() string {
	p.t.Helper()
	run, found, err := p.root().Active()
	if err != nil || !found {
		p.t.Fatalf("no active run: %v", err)
	}
	return run.ID
}

func TestDecisionsAreCountedAndDescribed(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	path := filepath.Join(t.TempDir(), "snapshot.json")
	p := setupWith(t, supervisor.Options{Metrics: registry, CompactionSnapshot: path}).pi("s1")
	p.startRun()
	p.compacts(nil)
	p.compacted(nil)
	if _, err := os.Stat(path); err == nil {
		t.Error("described without being asked")
	}
	p.compactionConfig(`{"debug":true}`)
	p.compacts(object{"customInstructions": "pi-plans planning pre-plan compact"})
	p.compacted(nil)
	p.compacts(object{"branchEntries": []object{}})
	counted := map[string]float64{}
	for sample, value := range lanestest.Samples(t, registry) {
		if labels, ok := strings.CutPrefix(sample, "pilothouse_compactions_total"); ok && value > 0 {
			counted[labels] = value
		}
	}
	want := map[string]float64{
		`{action="compaction",phase="planning"}`: 1, `{action="compaction",phase="pre-plan"}`: 1, `{action="cancel",phase="planning"}`: 1,
	}
	if diff := cmp.Diff(want, counted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
