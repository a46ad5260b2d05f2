package store_test

import (
	_ "embed"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

// defaultConfigFile is a configuration as it begins.
//
//go:embed testdata/config.new.json
var defaultConfigFile string

func configFile(root store.Root) string { return filepath.Join(root.Dir, "config.json") }

func TestANewWorkspaceHasTheDefaultConfigByteForByte(t *testing.T) {
	t.Parallel()
	root := ensure(t, newRepo(t))
	if diff := cmp.Diff(defaultConfigFile, read(t, configFile(root))); diff != "" {
		t.Error(diff)
	}
	config, err := root.LoadConfig()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(store.DefaultConfig(), config); diff != "" {
		t.Error(diff)
	}
}

func TestAnOldConfigIsCompletedAndKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	root := ensure(t, newRepo(t))
	write(t, configFile(root), `{"zeta":{"a":[1.50,"<&>"]},"artifact_root":"docs/plans","execution":{"x":1},`+
		`"reviewer":{"extra":true,"mode":"current-session"},"schema":1}`)
	config, err := root.LoadConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.ArtifactRoot != "./docs/pi-plans" || config.Reviewer.Mode != store.ModeCurrentSession ||
		config.Reviewer.NamePrefix != "pi-plans-reviewer" || config.RefsRootSource != store.SourceUnset {
		t.Errorf("got %+v", config)
	}
	if !strings.Contains(read(t, configFile(root)), "docs/plans\"") {
		t.Error("reading wrote the file")
	}
	ensure(t, root.Workdir)
	written := read(t, configFile(root))
	want := `{
	"zeta": {
		"a": [
			1.50,
			"<&>"
		]
	},
	"artifact_root": "./docs/pi-plans",
	"reviewer": {
		"extra": true,
		"mode": "current-session",
		"model_selector": null,
		"name_prefix": "pi-plans-reviewer",
		"confirmed_at": null
	},
	"schema": 1,
	"language": {`
	if diff := cmp.Diff(want, written[:min(len(want), len(written))]); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(written, "execution") || !strings.Contains(written, `"refs_root": null`) {
		t.Errorf("got %s", written)
	}
}

func TestUpdateConfigWritesWhatTheChangeSets(t *testing.T) {
	t.Parallel()
	root := ensure(t, newRepo(t))
	tag, at, on := "zh-Hans", store.Stamp(pinned), true
	returned, err := root.UpdateConfig(func(c *store.Config) error {
		c.Language = store.LanguageConfig{Tag: &tag, Source: store.SourceUser, UpdatedAt: &at}
		c.RefsRoot, c.RefsRootSource, c.RefsRootUpdatedAt = &tag, store.SourceAuto, &at
		c.GraphEnabled, c.GraphEnabledUpdatedAt = &on, &at
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := root.LoadConfig()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(returned, loaded); diff != "" {
		t.Error(diff)
	}
	var raw map[string]any
	if err := json.Unmarshal([]byte(read(t, configFile(root))), &raw); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"tag": "zh-Hans", "source": "user", "updated_at": "2026-08-25T13:00:00Z"}, raw["language"]); diff != "" {
		t.Error(diff)
	}
}

func TestAFailedChangeWritesNothing(t *testing.T) {
	t.Parallel()
	root := ensure(t, newRepo(t))
	failure := errors.New("no")
	_, err := root.UpdateConfig(func(c *store.Config) error { c.ArtifactRoot = "x"; return failure })
	if !errors.Is(err, failure) || read(t, configFile(root)) != defaultConfigFile {
		t.Errorf("got %v, %s", err, read(t, configFile(root)))
	}
}

func TestWithoutStateThereIsNoConfig(t *testing.T) {
	t.Parallel()
	root, err := store.Find(t.Context(), newRepo(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.LoadConfig(); !errors.Is(err, store.ErrNoState) || !strings.Contains(err.Error(), "no pi-plans state found") {
		t.Errorf("load: %v", err)
	}
	if _, err := root.UpdateConfig(func(*store.Config) error { return nil }); !errors.Is(err, store.ErrNoState) {
		t.Errorf("update: %v", err)
	}
}

func TestOnlyTheTwoModesOfARoleAreValid(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]bool{"delegated-subagent": true, "current-session": true, "": false, "bogus": false} {
		if got := (store.RoleConfig{Mode: mode}).ModeValid(); got != want {
			t.Errorf("%q: got %v", mode, got)
		}
	}
}

func TestTheCompactionConfigIsCompletedAndNeverClobbered(t *testing.T) {
	t.Parallel()
	root := ensure(t, newRepo(t))
	path := filepath.Join(root.Dir, "pi-vcc-config.json")
	if config, err := root.LoadCompactionConfig(); err != nil || config != store.DefaultCompactionConfig() {
		t.Errorf("missing: %+v, %v", config, err)
	}
	if err := root.ScaffoldCompactionConfig(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "{\n\t\"overrideDefaultCompaction\": true,\n\t\"smartKeepTail\": true,\n\t\"continueAfterThresholdCompact\": true,\n\t\"prePlanCompact\": true,\n\t\"debug\": false\n}\n"
	if diff := cmp.Diff(want, read(t, path)); diff != "" {
		t.Error(diff)
	}
	write(t, path, `{"mine":1,"prePlanCompact":false,"debug":"yes"}`)
	if err := root.ScaffoldCompactionConfig(t.Context()); err != nil {
		t.Fatal(err)
	}
	config, err := root.LoadCompactionConfig()
	if err != nil || config.PrePlanCompact || config.Debug || !config.SmartKeepTail {
		t.Errorf("got %+v, %v", config, err)
	}
	if !strings.HasPrefix(read(t, path), "{\n\t\"mine\": 1,\n\t\"prePlanCompact\": false,\n\t\"debug\": \"yes\",\n") {
		t.Errorf("got %s", read(t, path))
	}
}
