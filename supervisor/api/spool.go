package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pilothouse/lanes"
	"pilothouse/store"
)

// record is what is kept of a call on disk: that it was accepted, which round it
// became, and its result until that is acknowledged. The session's environment and
// the parameters are not in it.
type record struct {
	Schema int  `json:"schema"`
	Call   Call `json:"call"`
	// Digest tells a repeated request from another one with the same id.
	Digest  string   `json:"digest"`
	Started *Started `json:"started,omitempty"`
	// Transcripts are the files of the lanes, by lane.
	Transcripts map[string]string `json:"transcripts,omitempty"`
	Last        *Event            `json:"last,omitempty"`
}

const recordSchema = 1

// spool keeps the records of calls, each in a file of its own, so that neither a
// result nor the fact that a call was made is lost with the daemon.
type spool struct {
	dir   string
	turns *lanes.Turns // of writes
}

func openSpool(dir string, turns *lanes.Turns) (spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return spool{}, fmt.Errorf("make the directory for the results of calls: %w", err)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return spool{}, fmt.Errorf("results of calls cannot be kept: %w", err)
	}
	return spool{dir, turns}, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func (s spool) path(id string) string { return filepath.Join(s.dir, id+".json") }

// create writes the first record of a call. A call whose file is there already, even
// one that cannot be read, is an error that matches fs.ErrExist.
func (s spool) create(r record) error { return s.write(r, store.CreateFile) }

func (s spool) save(r record) error { return s.write(r, store.WriteFile) }

func (s spool) write(r record, write func(string, []byte) error) error {
	r.Schema = recordSchema
	data, err := encode(r)
	if err != nil {
		return fmt.Errorf("record call %s: %w", r.Call.ID, err)
	}
	defer s.turns.Take(context.Background(), lanes.UnderWay)()
	if err := write(s.path(r.Call.ID), data); err != nil {
		return fmt.Errorf("record call %s: %w", r.Call.ID, err)
	}
	return nil
}

func (s spool) remove(id string) error {
	if err := os.Remove(s.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget call %s: %w", id, err)
	}
	return nil
}

// load reads all records. Files that cannot be understood are reported and left as
// they are.
func (s spool) load(report func(error)) ([]record, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("read the results of calls: %w", err)
	}
	var records []record
	for _, e := range entries {
		id, found := strings.CutSuffix(e.Name(), ".json")
		if !found || !store.ValidID(id) { // the leavings of a write that was cut off
			continue
		}
		r, err := s.read(id)
		if err != nil {
			report(err)
			continue
		}
		records = append(records, r)
	}
	return records, nil
}

func (s spool) read(id string) (record, error) {
	var r record
	data, err := os.ReadFile(s.path(id))
	if err != nil {
		return r, fmt.Errorf("read call %s: %w", id, err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, &store.CorruptError{Path: s.path(id), Reason: "invalid JSON: " + err.Error()}
	}
	if r.Schema != recordSchema || r.Call.ID != id {
		return r, &store.CorruptError{Path: s.path(id), Reason: fmt.Sprintf("it has schema %d and call %q", r.Schema, r.Call.ID)}
	}
	return r, nil
}
