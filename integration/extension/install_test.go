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
	s.env = append(s.env, "PILOTHOUSE_PI="+piharness.NewPi(t).String())
	dir := filepath.Join(s.agentDir, "extensions", "pilothouse")
	contains(t, s.must("install"), dir, "already", "/reload")

	contains(t, s.must("install", "--project"), "would load both", "`pilothouse install --uninstall`")
	contains(t, s.must("install"), "would load both", "`pilothouse install --uninstall --project`")
	s.must("install", "--uninstall") // of the user, so that what loads is the project's
	s.must("install", "--project", "--uninstall")
	report := parse([]byte(s.must("install", "--project", "--json")))
	if want := filepath.Join(s.dir, ".pi", "extensions", "pilothouse"); report.at("dir").text() != want || report.at("written").number() == 0 {
		t.Errorf("report %s, want the directory %s", report, want)
	}
	if version := report.at("pi.version").text(); !strings.Contains(version, "1.6.0") || report.at("problem").text() != "" {
		t.Errorf("pi: %s", report)
	}
	p := s.open("--no-session", "--approve")
	if !slices.ContainsFunc(p.ask(map[string]any{"type": "get_commands"}).at("commands").list(), func(command value) bool {
		return command.at("name").text() == "plan-small"
	}) {
		t.Error("the extension of the project is not loaded")
	}
	p.close()
	contains(t, s.must("install", "--project", "--uninstall"), "removed")
	if _, err := os.Stat(filepath.Join(s.dir, ".pi", "extensions", "pilothouse")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the extension of the project is left: %v", err)
	}
	contains(t, s.must("install", "--project", "--uninstall"), "There is no extension")
}

func TestASessionHasTheCommandsAndTheSkills(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	names := map[string]string{}
	for _, command := range p.ask(map[string]any{"type": "get_commands"}).at("commands").list() {
		names[command.at("name").text()] = command.at("description").text()
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
	p.command("/plan-small Bake forty loaves.")
	p.settled()
	user := s.model.Requests()[0].User
	contains(t, user, "# A small plan", "Bake forty loaves.")
	p.close()
}
