package extension_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
)

func TestInstallSaysWhatItDidAndWhatIsNext(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Env = append(s.Env, "PILOTHOUSE_PI="+piharness.NewPi(t).String())
	dir := filepath.Join(s.AgentDir, "extensions", "pilothouse")
	contains(t, s.must("install"), dir, "already", "/reload")

	contains(t, s.must("install", "--project"), "would load both", "`pilothouse install --uninstall`")
	contains(t, s.must("install"), "would load both", "`pilothouse install --uninstall --project`")
	s.must("install", "--uninstall") // of the user, so that what loads is the project's
	s.must("install", "--project", "--uninstall")
	report := piharness.Parse([]byte(s.must("install", "--project", "--json")))
	if want := filepath.Join(s.Dir, ".pi", "extensions", "pilothouse"); report.At("dir").Text() != want || report.At("written").Number() == 0 {
		t.Errorf("report %s, want the directory %s", report, want)
	}
	if version := report.At("pi.version").Text(); !strings.Contains(version, "1.6.0") || report.At("problem").Text() != "" {
		t.Errorf("pi: %s", report)
	}
	p := s.open("--no-session", "--approve")
	if !slices.ContainsFunc(p.Ask(map[string]any{"type": "get_commands"}).At("commands").List(), func(command piharness.Value) bool {
		return command.At("name").Text() == "plan-small"
	}) {
		t.Error("the extension of the project is not loaded")
	}
	p.Close()
	contains(t, s.must("install", "--project", "--uninstall"), "removed")
	if _, err := os.Stat(filepath.Join(s.Dir, ".pi", "extensions", "pilothouse")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the extension of the project is left: %v", err)
	}
	contains(t, s.must("install", "--project", "--uninstall"), "There is no extension")
}

func TestASessionHasTheCommandsAndTheSkills(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	names := map[string]string{}
	for _, command := range p.Ask(map[string]any{"type": "get_commands"}).At("commands").List() {
		names[command.At("name").Text()] = command.At("description").Text()
	}
	for _, name := range []string{
		"plan", "plans", "plans-execute", "plans-stop", "plans-abandon", "plans-autocomplete-stop", "update-plan", "resume-plans", "config-pi-plans",
		"planning", "debug-and-plan", "plan-small", "plan-normal", "plan-big", "plan-with-refs",
		"skill:planning", "skill:debug-and-plan", "skill:plan-small", "skill:plan-normal", "skill:plan-big", "skill:plan-with-refs",
	} {
		if names[name] == "" {
			t.Errorf("there is no command %s, or it has no description", name)
		}
	}
	p.Prompt("/plan-small Bake forty loaves.")
	p.Settled()
	user := s.Model.Requests()[0].User
	contains(t, user, "# A small plan", "Bake forty loaves.")
	p.Close()
}
