package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
)

// Sources of a setting (spec: state 1.3).
const (
	SourceUnset = "unset"
	SourceUser  = "user"
	SourceAuto  = "auto"
)

// Modes of a role.
const (
	ModeDelegated      = "delegated-subagent"
	ModeCurrentSession = "current-session"
)

const defaultArtifactRoot = "./docs/pi-plans"

// Config is config.json, the preferences of a workspace (spec: state 1.3). Times
// are written by [Stamp]; nil is JSON null.
type Config struct {
	Schema                int            `json:"schema"`
	Language              LanguageConfig `json:"language"`
	Reviewer              RoleConfig     `json:"reviewer"`
	Criticizer            RoleConfig     `json:"criticizer"`
	ArtifactRoot          string         `json:"artifact_root"`
	ArtifactRootSource    string         `json:"artifact_root_source"`
	ArtifactRootUpdatedAt *string        `json:"artifact_root_updated_at" store:"null"`
	// RefsRoot is nil until the user chose where references are kept.
	RefsRoot          *string `json:"refs_root" store:"null"`
	RefsRootSource    string  `json:"refs_root_source"`
	RefsRootUpdatedAt *string `json:"refs_root_updated_at" store:"null"`
	// GraphEnabled is nil until the question was asked.
	GraphEnabled          *bool   `json:"graph_enabled" store:"null"`
	GraphEnabledUpdatedAt *string `json:"graph_enabled_updated_at" store:"null"`
	Extra                 Extra   `json:"-" later:"*"`
}

// LanguageConfig is the language that questions and artifacts are written in.
type LanguageConfig struct {
	// Tag is a BCP 47 tag, nil before it was chosen.
	Tag       *string `json:"tag" store:"null"`
	Source    string  `json:"source"`
	UpdatedAt *string `json:"updated_at" store:"null"`
	Extra     Extra   `json:"-" later:"*"`
}

// RoleConfig is how the reviewer or the criticizer works.
type RoleConfig struct {
	Mode string `json:"mode"`
	// ModelSelector is provider/model, nil to inherit the session's model.
	ModelSelector *string `json:"model_selector" store:"null"`
	NamePrefix    string  `json:"name_prefix"`
	// ConfirmedAt is nil until the user confirmed the model at its first use.
	ConfirmedAt *string `json:"confirmed_at" store:"null"`
	Extra       Extra   `json:"-" later:"*"`
}

// ModeValid tells whether the mode is one of the two that exist; otherwise the user
// has to be asked.
func (r RoleConfig) ModeValid() bool {
	return r.Mode == ModeDelegated || r.Mode == ModeCurrentSession
}

// Confirmed tells whether the user confirmed the model of the role.
func (r RoleConfig) Confirmed() bool { return r.ConfirmedAt != nil }

// DefaultConfig returns the settings of a new workspace.
func DefaultConfig() Config {
	return Config{
		Schema:             1,
		Language:           LanguageConfig{Source: SourceUnset},
		Reviewer:           RoleConfig{Mode: ModeDelegated, NamePrefix: "pi-plans-reviewer"},
		Criticizer:         RoleConfig{Mode: ModeDelegated, NamePrefix: "pi-plans-criticizer"},
		ArtifactRoot:       defaultArtifactRoot,
		ArtifactRootSource: SourceUnset,
		RefsRootSource:     SourceUnset,
	}
}

// MarshalJSON writes the config with all it was read with.
func (c Config) MarshalJSON() ([]byte, error) { return encodeValue(reflect.ValueOf(c), nil) }

// UnmarshalJSON reads a config as from its file: defaults fill what is missing.
func (c *Config) UnmarshalJSON(data []byte) (err error) {
	*c, err = decodeConfig(data)
	return err
}

// Clone returns a copy that shares nothing a caller could change.
func (c Config) Clone() Config { return cloneOf(c) }

// Validate checks the schema; everything else is the matter of who uses it.
func (c *Config) Validate() error {
	if c.Schema != 1 {
		return invalid("schema", "has the unsupported version %d", c.Schema)
	}
	return nil
}

// upgrade applies the rules for settings of old versions.
func (c *Config) upgrade() {
	if slices.Contains([]string{"docs/plans", "./docs/plans"}, c.ArtifactRoot) {
		c.ArtifactRoot = defaultArtifactRoot
	}
	c.Extra = c.Extra.without("execution")
}

// without returns the extra keys less one.
func (e Extra) without(key string) Extra {
	return Extra{source: e.source, unknown: slices.DeleteFunc(slices.Clone(e.unknown), func(k string) bool { return k == key })}
}

func decodeConfig(data []byte) (Config, error) {
	config := DefaultConfig()
	if err := decodeDocument(data, &config); err != nil {
		return Config{}, err
	}
	config.upgrade()
	return config, nil
}

func (r Root) configPath() string { return filepath.Join(r.Dir, "config.json") }

// LoadConfig reads the settings, with defaults for what is missing, and writes
// nothing. Errors: ErrNoState when there is no config.json, *CorruptError.
func (r Root) LoadConfig() (Config, error) {
	data, err := os.ReadFile(r.configPath())
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, fmt.Errorf("%w in %s; run `pilothouse plans init` first", ErrNoState, r.Workdir)
	}
	if err != nil {
		return Config{}, fmt.Errorf("read config: %w", err)
	}
	config, err := decodeConfig(data)
	if err != nil {
		return Config{}, &CorruptError{Path: r.configPath(), Reason: err.Error()}
	}
	return config, nil
}

// UpdateConfig changes the settings in one step that no other pilothouse process
// can interleave with, and returns what is now on disk. When change fails nothing is
// written and its error is returned. The state directory must exist (see [Ensure]).
func (r Root) UpdateConfig(change func(*Config) error) (Config, error) {
	return r.updateConfig(context.Background(), change)
}

func (r Root) normaliseConfig(ctx context.Context) error {
	_, err := r.updateConfig(ctx, func(*Config) error { return nil })
	return err
}

func (r Root) updateConfig(ctx context.Context, change func(*Config) error) (Config, error) {
	var config Config
	if err := r.requireState(); err != nil {
		return Config{}, err
	}
	err := withLock(ctx, filepath.Join(r.Dir, privateName, "config.lock"), func() error {
		before, err := os.ReadFile(r.configPath())
		if errors.Is(err, fs.ErrNotExist) {
			config = DefaultConfig()
		} else if err != nil {
			return fmt.Errorf("read config: %w", err)
		} else if config, err = decodeConfig(before); err != nil {
			return &CorruptError{Path: r.configPath(), Reason: err.Error()}
		}
		if err := change(&config); err != nil {
			return err
		}
		after, err := encodeDocument(config)
		if err != nil {
			return fmt.Errorf("encode config: %w", err)
		}
		if bytes.Equal(before, after) {
			return nil
		}
		if err := WriteFile(r.configPath(), after); err != nil {
			return fmt.Errorf("write config: %w", err)
		}
		return nil
	})
	if err != nil {
		return Config{}, err
	}
	return config, nil
}

// requireState makes the private folder of the state root, but never the root.
func (r Root) requireState() error {
	err := os.Mkdir(filepath.Join(r.Dir, privateName), privateDir)
	switch {
	case err == nil || errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w in %s; run `pilothouse plans init` first", ErrNoState, r.Workdir)
	default:
		return fmt.Errorf("open state directory: %w", err)
	}
}
