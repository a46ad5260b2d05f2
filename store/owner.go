package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"time"
)

// OwnerRecord is owner.json: which process, and which Pi session, holds a run (spec:
// ownership 3.1).
type OwnerRecord struct {
	Schema int    `json:"schema"`
	Host   string `json:"host"`
	PID    int    `json:"pid"`
	// PIDStart is when the process started, as `ps -o lstart=` prints it; nil when
	// ps could not tell.
	PIDStart *string `json:"pidStart" store:"null"`
	// SessionID is nil or "unknown" when the owner had none.
	SessionID    *string `json:"sessionId" store:"null,optional,lax"`
	ProcessToken string  `json:"processToken"`
	// Generation grows by one at each takeover.
	Generation int    `json:"generation"`
	AcquiredAt string `json:"acquiredAt"`
	Extra      Extra  `json:"-"`
}

// MarshalJSON writes the record in the order of the format.
func (r OwnerRecord) MarshalJSON() ([]byte, error) { return encodeValue(reflect.ValueOf(r), nil) }

// Validate checks every rule of the format.
func (r *OwnerRecord) Validate() error {
	rule := &rules{}
	rule.check(r.Schema == 1, "schema", "has the unsupported version %d", r.Schema)
	rule.check(r.Host != "", "host", "is empty")
	rule.atLeast("pid", r.PID, 1)
	rule.check(r.ProcessToken != "", "processToken", "is empty")
	rule.atLeast("generation", r.Generation, 1)
	return rule.err
}

// Session returns the session id, or "" for none.
func (r OwnerRecord) Session() string {
	if r.SessionID == nil || *r.SessionID == "unknown" {
		return ""
	}
	return *r.SessionID
}

// OwnedReason is why a run cannot be acquired.
type OwnedReason string

// The reasons of an OwnedError.
const (
	OwnedAlive        OwnedReason = "actively owned"
	OwnedBySession    OwnedReason = "actively owned by another session of this process"
	OwnedElsewhere    OwnedReason = "owned cross-host"
	OwnedUnverifiable OwnedReason = "owned by a process that cannot be seen from here"
	OwnedTakeover     OwnedReason = "being taken over: another takeover in flight"
)

// OwnedError tells that a run belongs to somebody else.
type OwnedError struct {
	RunID     string
	Host      string
	PID       int
	SessionID string
	Reason    OwnedReason
}

func (e *OwnedError) Error() string {
	if e.Reason == OwnedBySession && e.SessionID != "" { // the process is whoever is asked
		return fmt.Sprintf("run %s is actively owned: session %s works on it; close that session, then try again", e.RunID, e.SessionID)
	}
	who := fmt.Sprintf("process %d on %s", e.PID, e.Host)
	if e.SessionID != "" {
		who = "session " + e.SessionID + ", " + who
	}
	return fmt.Sprintf("run %s is %s (%s); wait for it or end it there, then try again", e.RunID, e.Reason, who)
}

func (d RunDir) owned(record OwnerRecord, reason OwnedReason) error {
	return &OwnedError{RunID: d.ID, Host: record.Host, PID: record.PID, SessionID: record.Session(), Reason: reason}
}

// LostOwnerError tells that a lease does not count any more: whoever held it must
// stop writing.
type LostOwnerError struct {
	RunID  string
	Reason string
}

func (e *LostOwnerError) Error() string {
	return fmt.Sprintf("this process no longer owns run %s: %s", e.RunID, e.Reason)
}

func (d RunDir) ownerPath() string { return d.path("owner.json") }

// loadOwner reads owner.json; a missing one gives the error of the file system.
func (d RunDir) loadOwner() (OwnerRecord, error) {
	var record OwnerRecord
	if err := readDocument(d.ownerPath(), &record); err != nil {
		return OwnerRecord{}, fmt.Errorf("read owner: %w", err)
	}
	return record, nil
}

const (
	// writingPatience is the age until which a record that cannot be understood may be
	// one that is just being written: the Pi extension makes the file first and fills
	// it then.
	writingPatience = 300 * time.Millisecond
	writingPause    = 10 * time.Millisecond
)

// writtenOwner is loadOwner that reads a record again while it may be unfinished.
func (d RunDir) writtenOwner(ctx context.Context) (OwnerRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, writingPatience)
	defer cancel()
	for {
		record, err := d.loadOwner()
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) {
			return record, err
		}
		info, statErr := os.Lstat(d.ownerPath())
		if statErr == nil && time.Since(info.ModTime()).Abs() > writingPatience {
			return record, err
		}
		select {
		case <-ctx.Done():
			return record, err
		case <-time.After(writingPause):
		}
	}
}

// OwnerState is what can be said of the owner of a run.
type OwnerState string

// The states of an owner.
const (
	OwnerNone         OwnerState = "none"
	OwnerAlive        OwnerState = "alive"
	OwnerDead         OwnerState = "dead"
	OwnerElsewhere    OwnerState = "elsewhere"
	OwnerUnverifiable OwnerState = "unverifiable"
)

// refusals are why the owner in a state keeps its run.
var refusals = map[OwnerState]OwnedReason{
	OwnerAlive: OwnedAlive, OwnerElsewhere: OwnedElsewhere, OwnerUnverifiable: OwnedUnverifiable,
}

// Owner tells who holds the run and whether it still lives, and changes nothing. The
// record is empty for OwnerNone. Errors: *CorruptError.
func (d RunDir) Owner() (OwnerRecord, OwnerState, error) {
	record, err := d.loadOwner()
	if errors.Is(err, fs.ErrNotExist) {
		return OwnerRecord{}, OwnerNone, nil
	}
	if err != nil {
		return OwnerRecord{}, "", err
	}
	return record, d.judge(record), nil
}
