package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Lease is this process's hold on a run. It does not run out: it ends with Release,
// with the process, or when somebody takes the run over, which only [Lease.Assert]
// and the next durable write notice.
type Lease struct {
	Token      string
	Generation int
	SessionID  string

	run   RunDir
	alive *flock.Flock
}

// held are the leases of this process by run directory. It only remembers; whether a
// lease counts is always asked of the disk.
var held = struct {
	sync.Mutex
	leases map[string]*Lease
}{leases: map[string]*Lease{}}

func heldLease(d RunDir) *Lease {
	held.Lock()
	defer held.Unlock()
	return held.leases[d.Dir]
}

// keep remembers the lease.
func (l *Lease) keep() {
	held.Lock()
	defer held.Unlock()
	held.leases[l.run.Dir] = l
}

// drop forgets the lease and lets its sign of life go.
func (l *Lease) drop() error {
	held.Lock()
	if held.leases[l.run.Dir] == l {
		delete(held.leases, l.run.Dir)
	}
	held.Unlock()
	if l.alive == nil {
		return nil
	}
	err := os.Remove(l.alive.Path())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.alive.Close())
}

// takeoverAttempts bounds how often a changing owner record is read again.
const takeoverAttempts = 3

var errOwnerChanged = errors.New("the owner changed meanwhile")

// Acquire takes the run for a session of this process (spec: ownership 3.3). It
// returns the lease the session has already, takes a free run, and takes over one
// whose owner is proven dead. A corrupt owner.json is left alone (see
// [RunDir.RepairOwner]). Errors: *OwnedError, *CorruptError, ErrNoRun, ErrLocked.
func (d RunDir) Acquire(ctx context.Context, sessionID string) (*Lease, error) {
	return d.acquire(ctx, sessionID, false)
}

// TakeOver is [RunDir.Acquire] that also takes the run from an owner that lives or
// cannot be seen. The former owner notices at its next write, which fails. It is for
// a user who knows that the owner is gone.
func (d RunDir) TakeOver(ctx context.Context, sessionID string) (*Lease, error) {
	return d.acquire(ctx, sessionID, true)
}

func (d RunDir) acquire(ctx context.Context, sessionID string, force bool) (*Lease, error) {
	var lease *Lease
	err := d.locked(ctx, func() (err error) {
		if lease, err = d.reuse(sessionID, force); lease != nil || err != nil {
			return err
		}
		var record OwnerRecord
		for range takeoverAttempts {
			record, err = d.loadOwner()
			switch {
			case errors.Is(err, fs.ErrNotExist):
				lease, err = d.claim(sessionID, nil)
			case err != nil:
				return err
			default:
				lease, err = d.succeed(ctx, record, sessionID, force)
			}
			if !errors.Is(err, fs.ErrExist) && !errors.Is(err, errOwnerChanged) {
				return err
			}
		}
		return d.owned(record, OwnedTakeover)
	})
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// reuse returns the lease that this process has, if the disk agrees.
func (d RunDir) reuse(sessionID string, force bool) (*Lease, error) {
	lease := heldLease(d)
	if lease == nil {
		return nil, nil
	}
	err := lease.Assert()
	var lost *LostOwnerError
	switch {
	case errors.As(err, &lost):
		return nil, lease.drop()
	case err != nil:
		return nil, err
	case lease.SessionID == sessionID:
		return lease, nil
	case force:
		return nil, lease.drop()
	}
	host, _ := os.Hostname()
	return nil, &OwnedError{RunID: d.ID, Host: host, PID: os.Getpid(), SessionID: lease.SessionID, Reason: OwnedBySession}
}

// succeed follows the owner on record: it adopts what is ours, refuses what lives,
// and takes over the rest.
func (d RunDir) succeed(ctx context.Context, record OwnerRecord, sessionID string, force bool) (*Lease, error) {
	if d.writtenByUs(record) && !force {
		if session := record.Session(); session != "" && session != sessionID {
			return nil, d.owned(record, OwnedBySession)
		}
		return d.adopt(record, sessionID)
	}
	switch state := d.judge(record); {
	case state == OwnerDead || force:
	case state == OwnerElsewhere:
		return nil, d.owned(record, OwnedElsewhere)
	case state == OwnerUnverifiable:
		return nil, d.owned(record, OwnedUnverifiable)
	default:
		return nil, d.owned(record, OwnedAlive)
	}
	var lease *Lease
	err := d.withTakeoverLock(ctx, record, func() error {
		now, err := d.loadOwner()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil || now.ProcessToken != record.ProcessToken || now.Generation != record.Generation {
			return errOwnerChanged
		}
		lease, err = d.claim(sessionID, &record)
		return err
	})
	return lease, err
}

// writtenByUs tells whether other code in this very process wrote the record. What
// pilothouse itself wrote is in held, or is from an earlier process with our id.
func (d RunDir) writtenByUs(record OwnerRecord) bool {
	if _, pilothouse := d.identityOf(record); pilothouse || record.PIDStart == nil {
		return false
	}
	here := thisMachine()
	return record.Host == here.host && record.PID == os.Getpid() &&
		startedAt(*record.PIDStart, record.PID, inspectProcess(record.PID))
}

func (d RunDir) adopt(record OwnerRecord, sessionID string) (*Lease, error) {
	lease := &Lease{Token: record.ProcessToken, Generation: record.Generation, SessionID: sessionID, run: d}
	if tokenPattern.MatchString(lease.Token) {
		if err := lease.showLife(); err != nil {
			return nil, errors.Join(err, lease.drop())
		}
	}
	lease.keep()
	return lease, nil
}

// claim writes our record: as a new file when there is no previous owner, which
// fails with fs.ErrExist when somebody was faster, else over the previous one.
func (d RunDir) claim(sessionID string, previous *OwnerRecord) (*Lease, error) {
	lease := &Lease{Token: newToken(), Generation: 1, SessionID: sessionID, run: d}
	if previous != nil {
		lease.Generation = previous.Generation + 1
	}
	record := OwnerRecord{
		Schema: 1, Host: thisMachine().host, PID: os.Getpid(), PIDStart: ownStart(),
		ProcessToken: lease.Token, Generation: lease.Generation, AcquiredAt: Stamp(time.Now()),
	}
	if sessionID != "" {
		record.SessionID = &sessionID
	}
	data, err := encodeDocument(record)
	if err != nil {
		return nil, fmt.Errorf("acquire run: %w", err)
	}
	// The sign of life comes first: once the record can be seen it must be there.
	if err := lease.showLife(); err != nil {
		return nil, errors.Join(err, lease.drop())
	}
	write := CreateFile
	if previous != nil {
		write = WriteFile
	}
	if err := write(d.ownerPath(), data); err != nil {
		return nil, fmt.Errorf("acquire run: %w", errors.Join(err, lease.drop()))
	}
	if previous != nil && tokenPattern.MatchString(previous.ProcessToken) {
		_ = os.Remove(d.signOfLifePath(previous.ProcessToken)) // only litter, of a dead owner
	}
	lease.keep()
	return lease, nil
}

// showLife takes the lock that the kernel holds for us until we die, and writes the
// identity that goes with it.
func (l *Lease) showLife() error {
	l.alive = flock.New(l.run.signOfLifePath(l.Token), flock.SetPermissions(privateFile))
	ok, err := l.alive.TryLock()
	if err == nil && !ok {
		err = ErrLocked
	}
	if err != nil {
		return fmt.Errorf("acquire run: %w", err)
	}
	if err := l.run.writeIdentity(l.Token); err != nil {
		return fmt.Errorf("acquire run: %w", err)
	}
	return nil
}

// Assert tells whether the lease still counts. Errors: *LostOwnerError when it does
// not, *CorruptError when that cannot be said.
func (l *Lease) Assert() error {
	record, err := l.run.loadOwner()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &LostOwnerError{RunID: l.run.ID, Reason: "it was released"}
	case err != nil:
		return err
	case record.ProcessToken != l.Token || record.Generation != l.Generation:
		return &LostOwnerError{RunID: l.run.ID, Reason: fmt.Sprintf("process %d on %s took it over", record.PID, record.Host)}
	}
	return nil
}

// Release gives the run back. False tells that it was not ours any more; then the
// record of who has it is left alone. A second release is false too.
func (l *Lease) Release() (released bool, err error) {
	err = l.run.locked(context.Background(), func() error {
		var lost *LostOwnerError
		if err := l.Assert(); errors.As(err, &lost) {
			return nil
		} else if err != nil {
			return err
		}
		if err := os.Remove(l.run.ownerPath()); err != nil {
			return fmt.Errorf("release run: %w", err)
		}
		released = true
		return syncDirectory(l.run.Dir)
	})
	if errors.Is(err, ErrNoRun) {
		err = nil // the whole run is gone
	}
	if err != nil {
		return released, err
	}
	return released, l.drop()
}

// RepairOwner moves a corrupt owner.json out of the way, so that the run can be
// acquired again, and returns where it is now; "" when it was not corrupt. It is for
// a user who asked for it.
func (d RunDir) RepairOwner(ctx context.Context) (string, error) {
	aside := ""
	err := d.locked(ctx, func() error {
		var corrupt *CorruptError
		if _, err := d.loadOwner(); !errors.As(err, &corrupt) {
			return nil
		}
		aside = filepath.Join(d.Dir, privateName, "corrupt-owner-"+randomHex(4)+".json")
		if err := os.Rename(d.ownerPath(), aside); err != nil {
			return fmt.Errorf("repair owner: %w", err)
		}
		return syncDirectory(d.Dir)
	})
	if err != nil {
		return "", err
	}
	return aside, nil
}
