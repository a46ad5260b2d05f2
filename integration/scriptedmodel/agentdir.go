package scriptedmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// model is an entry of Pi's models.json. The context window and the answer's
// limit are in tokens, the cost in dollars a million of them.
type model struct {
	ID            string             `json:"id"`
	Name          string             `json:"name"`
	Reasoning     bool               `json:"reasoning"`
	Input         []string           `json:"input"`
	ContextWindow int                `json:"contextWindow"`
	MaxTokens     int                `json:"maxTokens"`
	Cost          map[string]float64 `json:"cost"`
}

// models are the ones an agent directory offers, as sim/plain and so on: one
// without and one with thinking, one with little room.
var models = []model{
	newModel("plain", "Scripted", false, 128_000, 16_384),
	newModel("think", "Scripted, thinking", true, 128_000, 16_384),
	newModel("small", "Scripted, small context", false, 20_000, 2_000),
}

func newModel(id, name string, reasoning bool, window, limit int) model {
	return model{
		ID: id, Name: name, Reasoning: reasoning, Input: []string{"text"},
		ContextWindow: window, MaxTokens: limit,
		Cost: map[string]float64{"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75},
	}
}

// AgentDir makes dir an agent directory of Pi (PI_CODING_AGENT_DIR) whose only
// provider is the server at baseURL: models sim/plain, sim/think and sim/small,
// sim/plain by default. Compaction, telemetry and cache warming are off, so that
// every request is the caller's; retries are quick, and the ones hidden in Pi's
// client library are off. dir is made when missing. Files that are already there
// are never overwritten (errors.Is fs.ErrExist): the directory may be a person's.
func AgentDir(dir, baseURL string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make agent directory: %w", err)
	}
	provider := map[string]any{
		"name":    "Scripted model",
		"baseUrl": baseURL,
		"api":     "openai-completions",
		"apiKey":  "sk-dummy",
		"compat": map[string]any{
			"supportsDeveloperRole":    false,
			"supportsReasoningEffort":  true,
			"supportsUsageInStreaming": true,
			"maxTokensField":           "max_tokens",
		},
		"models": models,
	}
	settings := map[string]any{
		"defaultProvider":        "sim",
		"defaultModel":           "plain",
		"enableInstallTelemetry": false,
		"quietStartup":           true,
		"cacheWarming":           "off",
		"compaction":             map[string]any{"enabled": false},
		"retry": map[string]any{
			"enabled": true, "maxRetries": 3, "baseDelayMs": 100,
			"provider": map[string]any{"maxRetries": 0},
		},
	}
	if err := writeNew(filepath.Join(dir, "models.json"), map[string]any{"providers": map[string]any{"sim": provider}}); err != nil {
		return err
	}
	return writeNew(filepath.Join(dir, "settings.json"), settings)
}

func writeNew(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write agent directory: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
