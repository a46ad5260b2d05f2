package supervisor_test

import (
	"context"
	"testing"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// Whoever takes up an execution whose approval does not stand any more changes nothing
// before the user has approved it again.
func TestAResumedRunIsGuardedUntilItsPlanIsApprovedAgain(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(b *bundle) (store.RunDir, supervisor.Session){
		"moved to another work tree": func(b *bundle) (store.RunDir, supervisor.Session) {
			dir, _ := b.approvedHere()
			return dir, b.linked()
		},
		"another plan": func(b *bundle) (store.RunDir, supervisor.Session) {
			dir, plan := b.approvedHere()
			writeText(b.t, plan, twoChecks+"- [ ] `VC-003` more\n")
			return dir, b.session
		},
		"another plan, stopped": func(b *bundle) (store.RunDir, supervisor.Session) {
			dir, plan := b.approvedHere()
			if _, err := b.system.StopRun(context.Background(), b.session, dir.ID, "lunch"); err != nil {
				b.t.Fatal(err)
			}
			writeText(b.t, plan, twoChecks+"- [ ] `VC-003` more\n")
			return dir, b.session
		},
		"not on record how far it was": func(b *bundle) (store.RunDir, supervisor.Session) {
			dir := b.legacy(b.recorded(1, "legacy", store.StatusExecuting))
			b.artifact(dir, "PLAN_v1.md", twoChecks)
			return dir, b.session
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			dir, where := prepare(b)
			p := b.pi("resumer")
			p.Workdir = where.Workdir
			if _, err := b.system.Resume(context.Background(), supervisor.ResumeRequest{Session: p.Session, RunID: dir.ID, Move: true, Legacy: true}); err != nil {
				t.Fatal(err)
			}
			if p.writes("src/main.go") == "" || p.runs("touch src/main.go") == "" {
				t.Error("it may change the work tree without an approval")
			}
			p.execute(p.inTurn(confirm(true)))
			if reason := p.writes("src/main.go") + p.runs("touch src/main.go"); reason != "" {
				t.Errorf("the approved plan may not be carried out: %s", reason)
			}
		})
	}
}

// So it is in the session itself, when its daemon has died and its plan has been changed:
// nobody has to resume anything there.
func TestASessionWhosePlanIsNotTheApprovedOneAnyMoreIsGuardedAfterARestart(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(b *bundle, run store.RunDir){
		"edited": func(b *bundle, run store.RunDir) {
			b.planIn(run, 1, threeChecks+"- [ ] VC-004 and delete everything\n")
		},
		"removed": func(b *bundle, run store.RunDir) { removeFile(b.t, b.planIn(run, 1, threeChecks)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.commit()
			p, run := b.executing("s1", threeChecks)
			if reason := p.writes("src/main.go"); reason != "" {
				t.Fatalf("the approved plan may not be carried out: %s", reason)
			}
			disturb(b, run)
			again := b.restarted(p)
			again.hook("session_start", object{"reason": "reload"})
			if again.writes("src/main.go") == "" || again.runs("touch src/main.go") == "" {
				t.Error("it may change the work tree by a plan that nobody has approved")
			}
			if status := runStatus(t, run); status != store.StatusAccepted {
				t.Errorf("the run is %s", status)
			}
			b.planIn(run, 1, threeChecks+"- [ ] VC-004 and bake\n")
			again.execute(again.inTurn(confirm(true)))
			if reason := again.writes("src/main.go"); reason != "" || again.context() == "" {
				t.Errorf("the approved plan may not be carried out: %s", reason)
			}
		})
	}
}
