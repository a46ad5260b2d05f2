package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CompactionSnapshotPath is where the setting debug of a [CompactionConfig] has the
// last compaction described, unless another path is set (seed: VCC compact config).
const CompactionSnapshotPath = "/tmp/pi-vcc-debug.json"

// WriteCompactionSnapshot replaces path with data, for this user's eyes only. The path
// is one that everybody knows, in a folder that everybody writes to: what is there is
// never opened or followed, only replaced, and the new file is private from its first
// moment. It is a help to find faults, so nothing is made durable.
func WriteCompactionSnapshot(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".pilothouse-snapshot-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write compaction snapshot: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write compaction snapshot: %w", err)
	}
	return nil
}
