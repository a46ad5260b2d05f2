package integration_test

import (
	"os"
	"strings"
	"testing"
	"time"
)

const secret = "sk-very-secret-0123456789"

// What the session's environment holds reaches the children and nobody else; the
// plan is seen by no other user of the machine.
func TestSecretsAndThePlanStayOutOfFilesOutputAndCommandLines(t *testing.T) {
	t.Parallel()
	slow := say(nothingFound)
	slow.DelayMs = 300
	w := newWorkspace(t, on("Goal:", slow))
	w.setenv("SECRET_API_KEY", secret)
	path := w.Write("PLAN.md", plan)

	j := w.start("refine", path, "--reviewers", "3", "--model", "sim/plain", "--json", "-v")
	passedOn := false
	lines := map[string]bool{}
	for alive(j.Cmd.Process.Pid) {
		for _, line := range w.commandLines() {
			lines[line] = true
		}
		for lane := range w.children() {
			passedOn = passedOn || lane != ""
		}
		for name, content := range tree(t, w.stateRootOrNothing()) {
			if strings.Contains(content, secret) {
				t.Errorf("%s holds the secret while the round is on", name)
			}
		}
		time.Sleep(5 * time.Millisecond) // leaves the processor to what is watched
	}
	e := j.wait()
	if e.Code != 0 {
		t.Fatalf("ended with %d: %s", e.Code, e.Stderr)
	}
	if !passedOn || len(lines) < 2 {
		t.Errorf("saw %d command lines, children %v", len(lines), passedOn)
	}
	for line := range lines {
		if strings.Contains(line, secret) || strings.Contains(line, "Bake forty loaves") || strings.Contains(line, "Authority boundary") {
			t.Errorf("a command line tells too much: %s", line)
		}
	}
	for name, content := range tree(t, w.Dir) {
		if strings.Contains(content, secret) {
			t.Errorf("%s holds the secret", name)
		}
	}
	if strings.Contains(e.Stdout+e.Stderr, secret) {
		t.Errorf("the secret was printed:\n%s\n%s", e.Stdout, e.Stderr)
	}
}

// stateRootOrNothing is the state root once it is there, else a directory without files.
func (w *workspace) stateRootOrNothing() string {
	if _, err := os.Stat(w.stateRoot()); err != nil {
		return w.t.TempDir()
	}
	return w.stateRoot()
}
