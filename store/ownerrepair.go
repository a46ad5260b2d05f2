package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// RepairAction is what is done to the ownership of a run by hand.
type RepairAction string

// What can be done by hand.
const (
	// RepairRelease takes the run away from its owner; the run is free then.
	RepairRelease RepairAction = "release"
	// RepairSetAside moves an owner.json away that cannot be understood.
	RepairSetAside RepairAction = "set-aside"
	// RepairUnlock removes an owner.json.lock that a crash has left.
	RepairUnlock RepairAction = "unlock"
)

// Repair is a line of pilothouse/doctor.jsonl in the state root. It is on disk before
// the repair begins.
type Repair struct {
	At     string       `json:"at"`
	RunID  string       `json:"runId"`
	Action RepairAction `json:"action"`
	// State is what could be said of the owner, empty when it could not be read.
	State OwnerState `json:"state,omitempty"`
	// Owner had the run; nil when that could not be read.
	Owner *OwnerRecord `json:"owner,omitempty"`
	// Forced tells that the owner was not proven dead.
	Forced bool `json:"forced,omitempty"`
	// Problem is what was wrong with owner.json.
	Problem string `json:"problem,omitempty"`
	// KeptAs is where a corrupt owner.json is now.
	KeptAs string `json:"keptAs,omitempty"`
}

// doctorSession is the session of a repair. It is none that could hold a run, so a
// repair never takes the lease of a session of this process for its own.
const doctorSession = "pilothouse-doctor"

// ReleaseOwner frees a run that keeps its owner though it should not: it takes the run
// from a dead owner, sets a corrupt owner.json aside and removes a takeover lock that
// was left. With force it also takes the run from an owner that lives or cannot be
// judged, which notices at its next look or write and stops. Each repair is written
// down before it is done; the result is what was done, nothing when the run was free.
// Errors: *OwnedError, ErrNoRun, ErrLocked.
func (d RunDir) ReleaseOwner(ctx context.Context, force bool, now time.Time) ([]Repair, error) {
	var done []Repair
	repair, needed, err := d.ownerRepair(force, now)
	if err != nil {
		return nil, err
	}
	if needed {
		if repair, err = d.carryOut(ctx, repair); err != nil {
			return nil, err
		}
		done = append(done, repair)
	}
	lock, there, err := d.TakeoverLock()
	if err != nil || !there || !lock.Left {
		return done, err
	}
	repair = Repair{At: Stamp(now), RunID: d.ID, Action: RepairUnlock}
	if repair, err = d.carryOut(ctx, repair); err != nil {
		return done, err
	}
	return append(done, repair), nil
}

// ownerRepair decides what has to be done about owner.json.
func (d RunDir) ownerRepair(force bool, now time.Time) (_ Repair, needed bool, err error) {
	repair := Repair{At: Stamp(now), RunID: d.ID, Action: RepairRelease}
	record, state, err := d.Owner()
	var corrupt *CorruptError
	switch {
	case errors.As(err, &corrupt):
		repair.Action, repair.Problem = RepairSetAside, corrupt.Reason
		// Named beforehand, so that the log tells where to look after a crash.
		repair.KeptAs = d.asidePath()
		return repair, true, nil
	case err != nil:
		return Repair{}, false, err
	case state == OwnerNone:
		return Repair{}, false, nil
	}
	repair.State, repair.Owner = state, &record
	if state != OwnerDead && !force {
		return Repair{}, false, d.owned(record, refusals[state])
	}
	repair.Forced = state != OwnerDead
	return repair, true, nil
}

// carryOut writes a repair down and does it.
func (d RunDir) carryOut(ctx context.Context, repair Repair) (Repair, error) {
	if err := d.Root.logRepair(ctx, repair); err != nil {
		return Repair{}, fmt.Errorf("write down the repair of run %s: %w", d.ID, err)
	}
	switch repair.Action {
	case RepairSetAside:
		return repair, d.setOwnerAside(ctx, repair.KeptAs)
	case RepairUnlock:
		return repair, d.locked(ctx, func() error {
			_, err := d.breakTakeoverLock()
			return errors.Join(d.dropOwnTakeoverLock(), err)
		})
	}
	take := d.Acquire
	if repair.Forced {
		take = d.TakeOver
	}
	lease, err := take(ctx, doctorSession)
	if err != nil {
		return Repair{}, err
	}
	_, err = lease.Release()
	return repair, err
}

func (d RunDir) asidePath() string {
	return filepath.Join(d.Dir, privateName, "corrupt-owner-"+randomHex(4)+".json")
}

// setOwnerAside moves a corrupt owner.json to where it does no harm.
func (d RunDir) setOwnerAside(ctx context.Context, aside string) error {
	return d.locked(ctx, func() error {
		var corrupt *CorruptError
		if _, err := d.loadOwner(); !errors.As(err, &corrupt) {
			return fmt.Errorf("set owner aside: %w", errOwnerChanged)
		}
		if err := os.Rename(d.ownerPath(), aside); err != nil {
			return fmt.Errorf("set owner aside: %w", err)
		}
		return errors.Join(syncDirectory(filepath.Dir(aside)), syncDirectory(d.Dir))
	})
}

// logRepair appends a line and returns when it is durable.
func (r Root) logRepair(ctx context.Context, repair Repair) error {
	line, err := marshal(repair)
	if err != nil {
		return err
	}
	if err := r.requireState(); err != nil {
		return err
	}
	private := filepath.Join(r.Dir, privateName)
	return withLock(ctx, filepath.Join(private, "doctor.lock"), func() (err error) {
		file, err := os.OpenFile(filepath.Join(private, "doctor.jsonl"), os.O_RDWR|os.O_CREATE|os.O_APPEND, privateFile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		torn, _, err := unfinishedLine(file)
		if err != nil {
			return err
		}
		if len(torn) > 0 { // of a crash; it stays for a person to read
			line = append([]byte{'\n'}, line...)
		}
		if _, err := file.Write(append(line, '\n')); err != nil {
			return err
		}
		return errors.Join(file.Sync(), syncDirectory(private))
	})
}
