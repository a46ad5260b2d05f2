package supervisor_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pilothouse/supervisor"
)

// daemon is a system over a directory for the state of sessions that can be started
// again.
func (b *bundle) daemon(dir string) *bundle {
	b.t.Helper()
	system, err := supervisor.New(supervisor.Options{SessionsDir: dir})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = system.Close(context.Background()) })
	return &bundle{b.t, system, b.session}
}

func TestPlanModeSurvivesTheDaemon(t *testing.T) {
	t.Parallel()
	b, dir := &bundle{t: t, session: newSession(t)}, t.TempDir()
	first := b.daemon(dir).pi("s1")
	first.command("plan", "", first.nobody)
	info, err := os.Stat(filepath.Join(dir, "s1.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the state of the session: %v, %v", info, err)
	}
	second := b.daemon(dir).pi("s1") // the first never got to an orderly end
	if !second.planning() {
		t.Fatal("the session may write after a restart")
	}
	says(t, notices(second.hook("session_start", object{"reason": "reload"})), "still on")
	second.command("plan", "off", second.nobody)
	if third := b.daemon(dir).pi("s1"); third.planning() {
		t.Error("plan mode came back")
	}
}

func TestOnlyTheEndOfPiForgetsPlanMode(t *testing.T) {
	t.Parallel()
	for reason, kept := range map[string]bool{"reload": true, "new": true, "resume": true, "fork": true, "": true, "quit": false} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			b, dir := &bundle{t: t, session: newSession(t)}, t.TempDir()
			p := b.daemon(dir).pi("s1")
			p.command("plan", "", p.nobody)
			p.hook("session_shutdown", object{"reason": reason})
			if p.planning() != kept {
				t.Errorf("plan mode holds: %v", !kept)
			}
			if _, err := os.Stat(filepath.Join(dir, "s1.json")); os.IsNotExist(err) == kept {
				t.Errorf("the file of the session: %v", err)
			}
		})
	}
}

func TestAPlanModeThatCannotBeReadIsTakenToBeOn(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"torn": `{"schema":1,"ses`, "of another session": `{"schema":1,"session":"s2","active":false}`,
		"of a newer kind": `{"schema":2,"session":"s1","active":false}`, "empty": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, dir := &bundle{t: t, session: newSession(t)}, t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "s1.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			p := b.daemon(dir).pi("s1")
			if !p.planning() {
				t.Error("the session may write")
			}
			kept, err := os.ReadFile(filepath.Join(dir, "s1.json.damaged"))
			if err != nil || string(kept) != text {
				t.Errorf("the damaged file was not put aside: %q, %v", kept, err)
			}
			p.command("plan", "off", p.nobody)
			if p.planning() {
				t.Error("the user cannot leave")
			}
		})
	}
}

func TestATransitionThatCannotBeKeptDoesNotHappen(t *testing.T) {
	t.Parallel()
	b, dir := &bundle{t: t, session: newSession(t)}, filepath.Join(t.TempDir(), "sessions")
	p := b.daemon(dir).pi("s1")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := p.converse(supervisor.KindCommand, "plan", "", p.nobody); err == nil {
		t.Error("plan mode that would be forgotten was entered in silence")
	}
	if p.planning() {
		t.Error("a transition that failed has happened")
	}
}

func TestOldStateOfSessionsGoes(t *testing.T) {
	t.Parallel()
	b, dir := &bundle{t: t, session: newSession(t)}, t.TempDir()
	p := b.daemon(dir).pi("old")
	p.command("plan", "", p.nobody)
	young := b.daemon(dir).pi("young")
	young.command("plan", "", young.nobody)
	past := time.Now().Add(-31 * 24 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "old.json"), past, past); err != nil {
		t.Fatal(err)
	}
	again := b.daemon(dir)
	if again.pi("old").planning() || !again.pi("young").planning() {
		t.Error("the old state is kept, or the young one is not")
	}
}
