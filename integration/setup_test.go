package integration_test

import (
	"testing"

	"go.uber.org/goleak"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// unhurried is a drain time for lanes whose exit code is looked at: on a machine that
// is busy with other tests pi may take long to exit.
const unhurried = "5m"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// workspace is what pilothouse needs to work: a repository, the pinned Pi and a model.
type workspace struct {
	*piharness.Scene
	t *testing.T
}

// newWorkspace makes a workspace for the new generation of Pi, whose model
// answers by the rules.
func newWorkspace(t *testing.T, rules ...scriptedmodel.Rule) *workspace {
	t.Helper()
	return newWorkspaceWith(t, piharness.NewPi(t), rules...)
}

func newWorkspaceWith(t *testing.T, pi piharness.Command, rules ...scriptedmodel.Rule) *workspace {
	t.Helper()
	w := &workspace{piharness.NewSceneOf(t, pi, rules...), t}
	t.Cleanup(func() {
		if left := w.Survivors(); len(left) > 0 {
			t.Errorf("processes outlived the test: %v", left)
		}
	})
	return w
}

// setenv sets a variable for the programs that are started from now on.
func (w *workspace) setenv(name, value string) { w.Env = append(w.Env, name+"="+value) }

// ended is what a program left behind.
type ended struct{ piharness.Ended }

// job is a pilothouse at work.
type job struct{ *piharness.Program }

// wait is Wait with what the tests here read from it.
func (j *job) wait() ended {
	return ended{j.Wait()}
}

// start starts pilothouse in the workspace.
func (w *workspace) start(args ...string) *job {
	w.t.Helper()
	j := w.prepared(args...)
	j.Begin()
	return j
}

// prepared is a job that has not begun.
func (w *workspace) prepared(args ...string) *job {
	w.t.Helper()
	return &job{w.Prepare(args...)}
}

// run runs pilothouse in the workspace to its end.
func (w *workspace) run(args ...string) ended {
	w.t.Helper()
	return w.start(args...).wait()
}

// must runs pilothouse and fails the test unless it ends with the status.
func (w *workspace) must(code int, args ...string) ended {
	w.t.Helper()
	e := w.run(args...)
	if e.Code != code {
		w.t.Fatalf("pilothouse %v ended with %d, want %d; stderr:\n%s", args, e.Code, code, e.Stderr)
	}
	return e
}
