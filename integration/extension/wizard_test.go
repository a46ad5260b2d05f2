package extension_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestTheWizardOffersTheModelsOfPi(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open("--no-session", "--models", "sim/think,sim/small")
	p.send(map[string]any{"type": "prompt", "message": "/config-pi-plans"})
	answer := func(begins string) value {
		dialog := p.dialog("select")
		for _, option := range dialog.at("options").list() {
			if strings.HasPrefix(option.text(), begins) {
				p.reply(dialog, option.text())
				return dialog
			}
		}
		t.Fatalf("there is no option %q: %s", begins, dialog)
		return dialog
	}
	for _, begins := range []string{"en", "./docs", "./refs", "No", "A subagent"} {
		answer(begins)
	}
	models := answer("sim/small").at("options")
	var offered []string
	for _, option := range models.list() {
		offered = append(offered, option.text())
	}
	// That of the session by name, those that the user has scoped it to, the others that can be had.
	if got, want := strings.Join(offered, " · "), "That of the session · sim/think:medium · sim/think · sim/small · sim/plain · Other…"; got != want {
		t.Errorf("the models offered are %q, want %q", got, want)
	}
	answer("A subagent")
	answer("Other")
	input := p.dialog("input")
	p.reply(input, "sim/think:high")
	p.notice("The settings of the workspace are written")
	config := parse(s.read(filepath.Join(s.dir, ".git", "pi_plans", "config.json")))
	if got := config.at("reviewer.model_selector").text() + " " + config.at("criticizer.model_selector").text(); got != "sim/small sim/think:high" {
		t.Errorf("the models are %s", got)
	}
	p.close()
}
