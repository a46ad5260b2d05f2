package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pilothouse/actors"
	"pilothouse/store"
)

// errLeftWizard ends the wizard before its last question: nothing is written.
var errLeftWizard = errors.New("the wizard was left")

// configPlans is /config-pi-plans: it asks for every setting of the workspace and writes
// them in one step. A question that is dismissed, or answered with something that is no
// value, leaves all as it was. A run that has started keeps its own settings.
func configPlans(ctx context.Context, s *System, session Session, ui UI, _ json.RawMessage) (Reply, error) {
	if !ui.Has() {
		return notify(LevelError, "/config-pi-plans asks for each setting, and nobody sits before this session; use `pilothouse plans set-…`."), nil
	}
	config, err := s.settings(ctx, session)
	if err != nil {
		return Reply{}, err
	}
	w := &wizard{ui: ui, own: session.Model}
	var input *InputError
	err = w.ask(ctx, config)
	switch {
	case errors.Is(err, errLeftWizard):
		return notify(LevelInfo, "The settings stay as they were."), nil
	case errors.As(err, &input):
		return notify(LevelError, fmt.Sprintf("The settings stay as they were: %v.", err)), nil
	case err != nil:
		return Reply{}, fmt.Errorf("ask for the settings: %w", err)
	}
	now := store.Stamp(s.now())
	result, err := configure(context.WithoutCancel(ctx), session.Workdir, PlansAction{}, func(c *store.Config) error {
		for _, apply := range w.changes(now) {
			if err := apply(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Reply{}, err
	}
	notices := append(result.Notices, "The settings of the workspace are written. A run that has started keeps its own.")
	return notify(LevelInfo, strings.Join(notices, "\n")), nil
}

// settings are those of a workspace, also of one that has none yet.
func (s *System) settings(ctx context.Context, session Session) (store.Config, error) {
	root, found, err := s.rootOf(ctx, session)
	if err != nil {
		return store.Config{}, err
	}
	if !found {
		return store.DefaultConfig(), nil
	}
	config, err := root.LoadConfig()
	if errors.Is(err, store.ErrNoState) {
		return store.DefaultConfig(), nil
	}
	return config, err
}

// wizard asks for settings and keeps the answers as actions of the `plans` tool.
type wizard struct {
	ui      UI
	own     string // selector of the session's model, "" when it is not known
	actions []PlansAction
}

// changes are the answers as changes of the settings. They were checked when given.
func (w *wizard) changes(now string) (all []func(*store.Config) error) {
	for _, action := range w.actions {
		change, err := configActions[action.Action](action, now)
		if err != nil {
			change = func(*store.Config) error { return err }
		}
		all = append(all, change)
	}
	return all
}

func (w *wizard) ask(ctx context.Context, config store.Config) error {
	tag, err := w.choose(ctx, "Language of questions and plans", valueOf(config.Language.Tag), []string{"zh-Hans", "en", "zh-Hant"}, "a tag such as en or pt-BR", checkLanguage)
	if err != nil {
		return err
	}
	artifacts, err := w.choose(ctx, "Where plans are kept", config.ArtifactRoot, []string{"./docs/pi-plans", "./.git/pi_plans/plans"}, "a directory", checkDirectory)
	if err != nil {
		return err
	}
	refs, err := w.choose(ctx, "Where references are downloaded to", valueOf(config.RefsRoot), []string{".git/pi-plans/refs", "./refs/", "~/.cache/pi-plans/refs/"}, "a directory", checkDirectory)
	if err != nil {
		return err
	}
	graph, err := w.graph(ctx, config.GraphEnabled)
	if err != nil {
		return err
	}
	w.actions = append(w.actions,
		PlansAction{Action: "set-language", Tag: tag, LanguageSource: store.SourceUser},
		PlansAction{Action: "set-artifact-root", ArtifactRoot: artifacts, ArtifactRootSource: store.SourceUser},
		PlansAction{Action: "set-refs-root", RefsRoot: refs, RefsRootSource: store.SourceUser},
		PlansAction{Action: "set-graph-enabled", Enabled: &graph},
	)
	if err := w.role(ctx, actors.Reviewer, config.Reviewer); err != nil {
		return err
	}
	return w.role(ctx, actors.Criticizer, config.Criticizer)
}

func (w *wizard) graph(ctx context.Context, current *bool) (bool, error) {
	options := []string{"Yes", "No"}
	if current != nil && !*current {
		slices.Reverse(options)
	}
	choice, err := w.pick(ctx, "Use the code graph?", options)
	return choice == "Yes", err
}

// role asks how a role works and which model it has. The answer confirms the model.
func (w *wizard) role(ctx context.Context, role actors.Role, current store.RoleConfig) error {
	modes := []string{"A subagent of its own", "This session"}
	if current.Mode == store.ModeCurrentSession {
		slices.Reverse(modes)
	}
	choice, err := w.pick(ctx, fmt.Sprintf("Who does the work of the %s?", role), modes)
	if err != nil {
		return err
	}
	mode := store.ModeDelegated
	if choice == "This session" {
		mode = store.ModeCurrentSession
	}
	const inherits = "That of the session"
	model, err := w.choose(ctx, fmt.Sprintf("Model of the %s", role), valueOf(current.ModelSelector), append([]string{inherits, w.own}, w.ui.Models()...), "provider/model", checkModel)
	if err != nil {
		return err
	}
	if model == inherits {
		model = "inherit"
	}
	confirmed := true
	w.actions = append(w.actions, PlansAction{Action: "set-role", Role: string(role), Mode: mode, ModelSelector: model, Confirmed: &confirmed})
	return nil
}

// other is the option to type a value.
const other = "Other…"

// choose offers values, the present one first, and one to type.
func (w *wizard) choose(ctx context.Context, title, current string, values []string, placeholder string, check func(string) error) (string, error) {
	var options []string
	for _, value := range append([]string{current}, values...) {
		if value != "" && !slices.Contains(options, value) {
			options = append(options, value)
		}
	}
	choice, err := w.pick(ctx, title, append(options, other))
	if err != nil || choice != other {
		return choice, err
	}
	text, ok, err := w.ui.Input(ctx, title, placeholder)
	if err != nil {
		return "", err
	}
	if text = strings.TrimSpace(text); !ok || text == "" {
		return "", errLeftWizard
	}
	return text, check(text)
}

func (w *wizard) pick(ctx context.Context, title string, options []string) (string, error) {
	index, ok, err := w.ui.Select(ctx, title, options)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", errLeftWizard
	}
	return options[index], nil
}

func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// checkLanguage accepts the shape of a BCP 47 tag.
func checkLanguage(tag string) error {
	for i, part := range strings.Split(tag, "-") {
		letters := strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
		if part == "" || len(part) > 8 || i == 0 && (len(part) < 2 || letters != "") || strings.Trim(letters, "0123456789") != "" {
			return inputErrorf("%.80q is no language tag such as en or zh-Hans", tag)
		}
	}
	return nil
}

func checkDirectory(path string) error {
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return inputErrorf("%.80q is no directory", path)
	}
	return nil
}

func checkModel(selector string) error {
	if err := CheckSelector(selector); err != nil {
		return inputErrorf("the model %.80q is not taken: %v", selector, err)
	}
	return nil
}
