package supervisor_test

import (
	"errors"
	"strings"
	"testing"

	"pilothouse/store"
)

// refusesStatus checks that the agent cannot give itself write access by a status.
func (p *pi) refusesStatus(run store.RunDir, status store.RunStatus, words string) {
	p.t.Helper()
	before := runStatus(p.t, run)
	var refused *store.StateError
	if err := p.wantsStatus(run.ID, status); !errors.As(err, &refused) || !strings.Contains(err.Error(), words) {
		p.t.Errorf("%s from %s: got %v", status, before, err)
	}
	if now := runStatus(p.t, run); now != before {
		p.t.Errorf("%s became %s", before, now)
	}
}

func TestAnAgentDoesNotEndTheGuardOfItsRunByAStatus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run, _ := b.written("s1", threeChecks)
	for _, from := range []store.RunStatus{store.StatusPlanning, store.StatusAccepted} {
		if err := p.wantsStatus(run.ID, from); err != nil {
			t.Fatal(err)
		}
		p.refusesStatus(run, store.StatusExecuting, "execute_plan")
		for _, exit := range []store.RunStatus{store.StatusStopped, store.StatusAbandoned, store.StatusDone} {
			p.refusesStatus(run, exit, "/plans-abandon")
		}
		if p.writes("main.go") == "" {
			t.Errorf("%s: files may be written", from)
		}
	}
}

func TestARunIsSetToExecutingForThePlanThatWasApprovedAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", threeChecks)
	for _, status := range []store.RunStatus{store.StatusStopped, store.StatusExecuting} { // the guard is down, its user has approved
		if err := p.wantsStatus(run.ID, status); err != nil {
			t.Errorf("%s: %v", status, err)
		}
	}
	if err := p.wantsStatus(run.ID, store.StatusAccepted); err != nil {
		t.Fatal(err)
	}
	b.planIn(run, 1, threeChecks+"\nOne more line.\n")
	p.refusesStatus(run, store.StatusExecuting, "as it is on disk, has no approval")
	b.planIn(run, 1, threeChecks)
	if err := p.wantsStatus(run.ID, store.StatusExecuting); err != nil {
		t.Error(err)
	}
	p.command("update-plan", "", p.inTurn(confirm(true)))
	p.refusesStatus(run, store.StatusExecuting, "execute_plan")
}

func TestACommandLineEndsPlanningAndApprovesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.startRun()
	user := b.pi("")
	user.refusesStatus(run, store.StatusExecuting, "execute_plan")
	for _, status := range []store.RunStatus{store.StatusStopped, store.StatusPlanning, store.StatusDone, store.StatusAbandoned} {
		if err := user.wantsStatus(run.ID, status); err != nil {
			t.Errorf("%s: %v", status, err)
		}
	}
}
