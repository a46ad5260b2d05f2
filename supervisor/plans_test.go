package supervisor_test

import (
	"context"
	"errors"
	"testing"

	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestPlansActionsRefuseWrongParametersAndMakeNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	yes := true
	for name, action := range map[string]supervisor.PlansAction{
		"unknown action":        {Action: "frobnicate"},
		"no action":             {},
		"language without tag":  {Action: "set-language", LanguageSource: "user"},
		"language source":       {Action: "set-language", Tag: "en", LanguageSource: "guess"},
		"artifact root":         {Action: "set-artifact-root", ArtifactRootSource: "user"},
		"refs root":             {Action: "set-refs-root", RefsRoot: "refs"},
		"graph without enabled": {Action: "set-graph-enabled"},
		"role":                  {Action: "set-role", Role: "executor"},
		"mode":                  {Action: "set-role", Role: "reviewer", Mode: "sometimes"},
		"confirmed and reset":   {Action: "set-role", Role: "reviewer", Confirmed: &yes, ResetConfirmation: &yes},
		"model selector":        {Action: "set-role", Role: "reviewer", ModelSelector: "just-a-model"},
		"start-run":             {Action: "start-run", Topic: "a", Skill: "plan-small"},
	} {
		_, err := b.system.Plans(context.Background(), b.session, action)
		var input *supervisor.InputError
		if !errors.As(err, &input) {
			t.Errorf("%s: got %v, want an InputError", name, err)
		}
	}
	if _, err := b.system.Plans(context.Background(), b.session, supervisor.PlansAction{Action: "show"}); !errors.Is(err, store.ErrNoState) {
		t.Errorf("something was made: show says %v", err)
	}
}

func TestAModeOnlyEditKeepsTheConfirmation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	yes := true
	role := func(action supervisor.PlansAction) store.RoleConfig {
		t.Helper()
		action.Action, action.Role = "set-role", "reviewer"
		value, err := b.system.Plans(context.Background(), b.session, action)
		if err != nil {
			t.Fatal(err)
		}
		result, _ := value.(supervisor.ConfigResult)
		return result.Config.Reviewer
	}
	if r := role(supervisor.PlansAction{Mode: "current-session"}); r.Confirmed() || r.Mode != "current-session" {
		t.Errorf("a mode edit forged a confirmation: %+v", r)
	}
	if r := role(supervisor.PlansAction{Confirmed: &yes, ModelSelector: "inherit"}); !r.Confirmed() || r.ModelSelector != nil {
		t.Errorf("confirmed inherit: %+v", r)
	}
	if r := role(supervisor.PlansAction{ModelSelector: "sim/plain"}); !r.Confirmed() || *r.ModelSelector != "sim/plain" {
		t.Errorf("a changed selector lost the confirmation: %+v", r)
	}
	if r := role(supervisor.PlansAction{Mode: "delegated-subagent"}); !r.Confirmed() || *r.ModelSelector != "sim/plain" {
		t.Errorf("a mode edit lost the confirmation: %+v", r)
	}
	if r := role(supervisor.PlansAction{ResetConfirmation: &yes}); r.Confirmed() || *r.ModelSelector != "sim/plain" {
		t.Errorf("reset: %+v", r)
	}
}

func TestCheckpointTransitionsBeyondTheWhitelistAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, err := b.system.Refine(context.Background(), b.plan("PLAN.md", "# A plan\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	record := func(p supervisor.CheckpointParams) (store.Checkpoint, error) {
		value, err := b.system.Plans(context.Background(), b.session, supervisor.PlansAction{
			Action: "record-checkpoint", RunID: first.RunID, Checkpoint: &p,
		})
		cp, _ := value.(store.Checkpoint)
		return cp, err
	}
	for _, forged := range []string{"execution-approved", "vc-passed", "executing", ""} {
		var input *supervisor.InputError
		if _, err := record(supervisor.CheckpointParams{Transition: forged}); !errors.As(err, &input) {
			t.Errorf("transition %q: got %v, want an InputError", forged, err)
		}
	}
	var state *store.StateError
	if _, err := record(supervisor.CheckpointParams{Transition: "completed", Evidence: "all of it"}); !errors.As(err, &state) {
		t.Errorf("completing a run that is being planned: got %v, want a StateError", err)
	}
	cp, err := record(supervisor.CheckpointParams{Transition: "review-consolidated", RoundID: first.RoundID})
	if err != nil || !cp.Round(first.RoundID).Consolidated {
		t.Errorf("consolidated: %v", err)
	}
	again, err := record(supervisor.CheckpointParams{Transition: "review-consolidated", RoundID: first.RoundID})
	if err != nil || again.Revision != cp.Revision {
		t.Errorf("recording it again: revision %d after %d, %v", again.Revision, cp.Revision, err)
	}
}

func TestRecordsAreStoredAndReturned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	value, err := b.system.Plans(ctx, b.session, supervisor.PlansAction{Action: "start-run", Topic: "A topic", Skill: "plan-small", RequestText: "do it"})
	if err != nil {
		t.Fatal(err)
	}
	started, _ := value.(supervisor.StartRunResult)
	run := started.Run
	value, err = b.system.Plans(ctx, b.session, supervisor.PlansAction{
		Action: "record-decision", RunID: run.RunID,
		Decision: &supervisor.DecisionParams{Question: "Which?", Options: []string{"a", "b"}, Answer: "a", AnswerSource: "user"},
	})
	if d, ok := value.(store.ToolDecision); err != nil || !ok || d.Answer != "a" || d.RecordedAt == "" {
		t.Errorf("record-decision: %+v, %v", value, err)
	}
	value, err = b.system.Plans(ctx, b.session, supervisor.PlansAction{Action: "set-status", RunID: run.RunID, Status: "accepted"})
	if r, ok := value.(store.Run); err != nil || !ok || r.Status != store.StatusAccepted {
		t.Errorf("set-status: %+v, %v", value, err)
	}
	var input *supervisor.InputError
	if _, err := b.system.Plans(ctx, b.session, supervisor.PlansAction{Action: "set-status", RunID: run.RunID, Status: "bogus"}); !errors.As(err, &input) {
		t.Errorf("bogus status: %v", err)
	}
	decisions, err := b.run(run.RunID).Decisions()
	if err != nil || len(decisions) != 1 || decisions[0].Question != "Which?" {
		t.Errorf("ledger: %+v, %v", decisions, err)
	}
}
