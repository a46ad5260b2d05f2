package proc

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// recordSchema is the version of the record file; Sweep leaves others alone.
const recordSchema = 1

// record is what the guard and Sweep need to end the tree of one child. It is on
// file before the child exists, without its number, and again with it.
type record struct {
	Schema       int      `json:"schema"`
	Label        string   `json:"label"`
	Child        Identity `json:"child"`
	Orchestrator Identity `json:"orchestrator"`
}

// Endings of the files in the folder of records.
const (
	recordSuffix    = ".json" // <boot id>.<nonce>.json
	temporarySuffix = ".tmp"  // <owner>.<nonce>.tmp, a record that is being written
)

// records keeps the records of the live children of one Spawner. An empty dir keeps nothing.
//
// A record means something in the boot that wrote it only, so it has to outlive
// the process but not the machine: it is renamed into place, so that no reader
// sees half of it, but not fsynced, which would cost more than the start of the
// child. What a power failure leaves of it is told by the boot in its name.
type records struct{ dir string }

func (r records) path(child Identity) string {
	return filepath.Join(r.dir, child.BootID+"."+child.Nonce+recordSuffix)
}

func (r records) put(rec record) error {
	if r.dir == "" {
		return nil
	}
	text, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("record child process: %w", err)
	}
	// Unique: a nonce has one writer, which writes one record at a time.
	temporary := filepath.Join(r.dir, ownerName(rec.Orchestrator)+"."+rec.Child.Nonce+temporarySuffix)
	err = os.WriteFile(temporary, append(text, '\n'), 0o600)
	if err == nil {
		err = os.Rename(temporary, r.path(rec.Child))
	}
	if err != nil {
		_ = os.Remove(temporary)
		return fmt.Errorf("record child process: %w", err)
	}
	return nil
}

// remove deletes the record of a child that is reaped and swept.
func (r records) remove(child Identity) {
	if r.dir != "" {
		_ = os.Remove(r.path(child))
	}
}

func readRecord(path string) (record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return record{}, err
	}
	var rec record
	if err := json.Unmarshal(text, &rec); err != nil {
		return record{}, fmt.Errorf("%s: %w", path, err)
	}
	if rec.Schema != recordSchema || rec.Child.Nonce == "" {
		return record{}, fmt.Errorf("%s: not a record of schema %d", path, recordSchema)
	}
	return rec, nil
}

// ofOtherBoot reports whether the record called name was written in another boot.
func ofOtherBoot(name string) bool {
	boot, _, _ := strings.Cut(name, ".")
	return bootID() != "" && boot != bootID()
}
