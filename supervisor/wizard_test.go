package supervisor_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// settings are the answers of a user who changes everything.
func settings() []func(supervisor.Dialog) supervisor.Answer {
	return []func(supervisor.Dialog) supervisor.Answer{
		choose("Other"), write(" pt-BR "),
		choose("./.git/pi_plans/plans"),
		choose("~/.cache"),
		choose("No"),
		choose("A subagent"), choose("sim/deep"),
		choose("This session"), choose("Other"), write("sim/plain"),
	}
}

func TestTheWizardWritesEverySettingAndConfirmsBothModels(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	run := p.startRun()
	p.Model, p.screen.Models = "sim/own", []string{"sim/deep", "sim/own", "sim/deep"}
	answers := settings()
	answers[6] = func(d supervisor.Dialog) supervisor.Answer {
		if want := []string{"That of the session", "sim/own", "sim/deep", "Other…"}; !slices.Equal(d.Options, want) {
			t.Errorf("the models offered are %q, want %q", d.Options, want)
		}
		return choose("sim/deep")(d)
	}
	says(t, notices(p.command("config-pi-plans", "", p.inTurn(answers...))), "are written")
	config, err := p.root().LoadConfig()
	if err != nil {
		t.Fatal(err)
	}
	for name, stamp := range map[string]*string{
		"language": config.Language.UpdatedAt, "artifact root": config.ArtifactRootUpdatedAt, "refs root": config.RefsRootUpdatedAt,
		"graph": config.GraphEnabledUpdatedAt, "reviewer": config.Reviewer.ConfirmedAt, "criticizer": config.Criticizer.ConfirmedAt,
	} {
		if stamp == nil || *stamp == "" {
			t.Errorf("the time of the choice of the %s is not written", name)
		}
	}
	got := map[string]any{
		"language": *config.Language.Tag + " " + config.Language.Source, "artifacts": config.ArtifactRoot + " " + config.ArtifactRootSource,
		"refs": *config.RefsRoot + " " + config.RefsRootSource, "graph": *config.GraphEnabled,
		"reviewer": config.Reviewer.Mode + " " + *config.Reviewer.ModelSelector, "criticizer": config.Criticizer.Mode + " " + *config.Criticizer.ModelSelector,
	}
	want := map[string]any{
		"language": "pt-BR user", "artifacts": "./.git/pi_plans/plans user", "refs": "~/.cache/pi-plans/refs/ user", "graph": false,
		"reviewer": "delegated-subagent sim/deep", "criticizer": "current-session sim/plain",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	dir, err := p.root().Run(run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	after, err := dir.Load()
	if err != nil {
		t.Fatal(err)
	}
	if after.ArtifactDir != run.ArtifactDir || after.LanguageTag != nil {
		t.Errorf("the wizard changed the run: %+v", after)
	}
	// A second time all is kept by the first option.
	first := func(d supervisor.Dialog) supervisor.Answer { index := 0; return supervisor.Answer{Index: &index} }
	p.command("config-pi-plans", "", p.inTurn(slices.Repeat([]func(supervisor.Dialog) supervisor.Answer{first}, 8)...))
	again, err := p.root().LoadConfig()
	if err != nil {
		t.Fatal(err)
	}
	if *again.Language.Tag != "pt-BR" || *again.GraphEnabled || again.Criticizer.Mode != "current-session" || *again.Criticizer.ModelSelector != "sim/plain" {
		t.Errorf("the first options are not what was set: %+v", again)
	}
}

func TestTheWizardWritesNothingUnlessEveryAnswerIsAValue(t *testing.T) {
	t.Parallel()
	type change = func(a []func(supervisor.Dialog) supervisor.Answer) []func(supervisor.Dialog) supervisor.Answer
	at := func(n int, answer func(supervisor.Dialog) supervisor.Answer) change {
		return func(a []func(supervisor.Dialog) supervisor.Answer) []func(supervisor.Dialog) supervisor.Answer {
			return append(a[:n:n], answer)
		}
	}
	tests := map[string]change{
		"no language tag": at(1, write("en US")), "a tag of one letter": at(1, write("e")), "no text": at(1, write(" ")), "no text at all": at(1, dismiss),
		"a selector without a model": at(9, write("sim")), "a selector with a blank": at(9, write("sim/a b")), "an option for a selector": at(9, write("--x/y")),
	}
	for n := range settings() {
		if n != 1 && n != 9 {
			tests["dismissed at "+string(rune('a'+n))] = at(n, dismiss)
		}
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t).pi("s1")
			p.screen.Models = []string{"sim/deep"}
			says(t, notices(p.command("config-pi-plans", "", p.inTurn(change(settings())...))), "stay as they were")
			if _, err := p.root().LoadConfig(); !errors.Is(err, store.ErrNoState) {
				t.Errorf("something was written: %v", err)
			}
		})
	}
}

func TestTheWizardLeavesBrokenSettingsAndSessionsWithoutAUserAlone(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	p.screen.Has = false
	says(t, notices(p.command("config-pi-plans", "", p.nobody)), "pilothouse plans")
	p.screen.Has = true
	p.startRun()
	path := inDir(p.root().Dir, "config.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var corrupt *store.CorruptError
	if _, err := p.converse(supervisor.KindCommand, "config-pi-plans", "", p.nobody); !errors.As(err, &corrupt) {
		t.Errorf("broken settings: %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "{" {
		t.Errorf("the broken file is %q now, %v", data, err)
	}
}
