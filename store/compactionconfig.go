package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CompactionConfig is pi-vcc-config.json (spec: compaction 6.1).
type CompactionConfig struct {
	OverrideDefaultCompaction     bool `json:"overrideDefaultCompaction"`
	SmartKeepTail                 bool `json:"smartKeepTail"`
	ContinueAfterThresholdCompact bool `json:"continueAfterThresholdCompact"`
	PrePlanCompact                bool `json:"prePlanCompact"`
	Debug                         bool `json:"debug"`
}

// DefaultCompactionConfig returns the settings that hold where a file says nothing.
func DefaultCompactionConfig() CompactionConfig {
	return CompactionConfig{
		OverrideDefaultCompaction: true, SmartKeepTail: true,
		ContinueAfterThresholdCompact: true, PrePlanCompact: true,
	}
}

func (r Root) compactionConfigPath() string { return filepath.Join(r.Dir, "pi-vcc-config.json") }

// LoadCompactionConfig reads the settings; what is missing or not a boolean has its
// default. The settings are usable, all defaults, even with an error, which is a
// *CorruptError for a broken file. A missing file is none.
func (r Root) LoadCompactionConfig() (CompactionConfig, error) {
	config := DefaultCompactionConfig()
	stored, err := r.readCompactionConfig()
	if errors.Is(err, fs.ErrNotExist) {
		return config, nil
	}
	if err != nil {
		return config, err
	}
	for name, field := range map[string]*bool{
		"overrideDefaultCompaction":     &config.OverrideDefaultCompaction,
		"smartKeepTail":                 &config.SmartKeepTail,
		"continueAfterThresholdCompact": &config.ContinueAfterThresholdCompact,
		"prePlanCompact":                &config.PrePlanCompact,
		"debug":                         &config.Debug,
	} {
		switch string(stored.values[name]) {
		case "true":
			*field = true
		case "false":
			*field = false
		}
	}
	return config, nil
}

func (r Root) readCompactionConfig() (object, error) {
	data, err := os.ReadFile(r.compactionConfigPath())
	if err != nil {
		return object{}, err
	}
	if !json.Valid(data) {
		return object{}, &CorruptError{Path: r.compactionConfigPath(), Reason: "invalid JSON"}
	}
	stored, err := parseObject(data)
	if err != nil {
		return object{}, &CorruptError{Path: r.compactionConfigPath(), Reason: "the document " + err.Error()}
	}
	return stored, nil
}

// ScaffoldCompactionConfig writes the keys that the file lacks, with their defaults;
// everything that is there stays as it is. Errors: ErrNoState, *CorruptError.
func (r Root) ScaffoldCompactionConfig(ctx context.Context) error {
	if err := r.requireState(); err != nil {
		return err
	}
	return withLock(ctx, filepath.Join(r.Dir, privateName, "config.lock"), func() error {
		stored, err := r.readCompactionConfig()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		compact, err := marshal(DefaultCompactionConfig())
		if err != nil {
			return fmt.Errorf("encode compaction config: %w", err)
		}
		defaults, err := parseObject(compact)
		if err != nil {
			return fmt.Errorf("encode compaction config: %w", err)
		}
		missing := false
		for _, key := range defaults.keys {
			if !stored.has(key) {
				stored.set(key, defaults.values[key])
				missing = true
			}
		}
		if !missing {
			return nil
		}
		return r.writeCompactionConfig(stored)
	})
}

func (r Root) writeCompactionConfig(stored object) error {
	compact, err := stored.encode()
	if err != nil {
		return fmt.Errorf("encode compaction config: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compact, "", "\t"); err != nil {
		return fmt.Errorf("encode compaction config: %w", err)
	}
	out.WriteByte('\n')
	if err := WriteFile(r.compactionConfigPath(), out.Bytes()); err != nil {
		return fmt.Errorf("write compaction config: %w", err)
	}
	return nil
}
