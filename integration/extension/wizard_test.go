package extension_test

import (
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
)

func TestTheWizardOffersTheModelsOfPi(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open("--no-session", "--models", "sim/think,sim/small")
	p.Send(map[string]any{"type": "prompt", "message": "/config-pi-plans"})
	answer := func(begins string) piharness.Value {
		dialog := p.Dialog("select")
		for _, option := range dialog.At("options").List() {
			if strings.HasPrefix(option.Text(), begins) {
				p.Reply(dialog, option.Text())
				return dialog
			}
		}
		t.Fatalf("there is no option %q: %s", begins, dialog)
		return dialog
	}
	for _, begins := range []string{"en", "./docs", "./refs", "No", "A subagent"} {
		answer(begins)
	}
	models := answer("sim/small").At("options")
	var offered []string
	for _, option := range models.List() {
		offered = append(offered, option.Text())
	}
	// That of the session by name, those that the user has scoped it to, the others that can be had.
	if got, want := strings.Join(offered, " · "), "That of the session · sim/think:medium · sim/think · sim/small · sim/plain · Other…"; got != want {
		t.Errorf("the models offered are %q, want %q", got, want)
	}
	answer("A subagent")
	answer("Other")
	input := p.Dialog("input")
	p.Reply(input, "sim/think:high")
	p.Notice("The settings of the workspace are written")
	config := piharness.Parse(s.read(filepath.Join(s.Dir, ".git", "pi_plans", "config.json")))
	if got := config.At("reviewer.model_selector").Text() + " " + config.At("criticizer.model_selector").Text(); got != "sim/small sim/think:high" {
		t.Errorf("the models are %s", got)
	}
	p.Close()
}
