package scriptedmodel_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/scriptedmodel"
)

func TestAnAgentDirectoryPointsPiToTheServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "agent")
	if err := scriptedmodel.AgentDir(dir, "http://127.0.0.1:9/v1"); err != nil {
		t.Fatal(err)
	}
	var models struct {
		Providers map[string]struct {
			BaseURL string `json:"baseUrl"`
			API     string `json:"api"`
			Models  []struct {
				ID            string `json:"id"`
				Reasoning     bool   `json:"reasoning"`
				ContextWindow int    `json:"contextWindow"`
			} `json:"models"`
		} `json:"providers"`
	}
	read(t, filepath.Join(dir, "models.json"), &models)
	sim := models.Providers["sim"]
	if sim.BaseURL != "http://127.0.0.1:9/v1" || sim.API != "openai-completions" {
		t.Errorf("provider %+v", sim)
	}
	type model = struct {
		ID            string `json:"id"`
		Reasoning     bool   `json:"reasoning"`
		ContextWindow int    `json:"contextWindow"`
	}
	if diff := cmp.Diff([]model{{"plain", false, 128000}, {"think", true, 128000}, {"small", false, 20000}}, sim.Models); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	var settings struct {
		DefaultProvider, DefaultModel string
		Compaction                    struct{ Enabled *bool }
	}
	read(t, filepath.Join(dir, "settings.json"), &settings)
	if settings.DefaultProvider != "sim" || settings.DefaultModel != "plain" {
		t.Errorf("default model %s/%s", settings.DefaultProvider, settings.DefaultModel)
	}
	if enabled := settings.Compaction.Enabled; enabled == nil || *enabled {
		t.Error("compaction is not turned off")
	}
}

func TestAPersonsAgentDirectoryIsNotOverwritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "settings.json")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := scriptedmodel.AgentDir(dir, "http://127.0.0.1:9/v1"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
		t.Errorf("now %q, %v", data, err)
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}
