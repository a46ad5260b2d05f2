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
	place string // of the run, see RunDir.place
	alive *flock.Flock
}

// held are the leases of this process by the place of the run. It only remembers;
// whether a lease counts is always asked of the disk.
var held = struct {
	sync.Mutex
	leases map[string]*Lease
}{leases: map[string]*Lease{}}

func heldLease(d RunDir) *Lease {
	place := d.place()
	held.Lock()
	defer held.Unlock()
	return held.leases[place]
}

// place is the directory of the run without symbolic links: the state of two
// workspaces may be one directory (faults E82).
func (d RunDir) place() string {
	if place, err := filepath.EvalSymlinks(d.Dir); err == nil {
		return place
	}
	return d.Dir // it is gone
}

// keep remembers the lease.
func (l *Lease) keep() {
	held.Lock()
	defer held.Unlock()
	held.leases[l.place] = l
}

// drop forgets the lease and lets its sign of life go.
func (l *Lease) drop() error {
	held.Lock()
	if held.leases[l.place] == l {
		delete(held.leases, l.place)
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
// [RunDir.ReleaseOwner]). Errors: *OwnedError, *CorruptError, ErrNoRun, ErrLocked.
func (d RunDir) Acquire(ctx context.Context, sessionID string) (*Lease, error) {
	return d.acquire(ctx, sessionID, false)
}

// TakeOver is [RunDir.Acquire] that also takes the run from an owner that lives or
// cannot be seen. The former owner notices when it next looks or writes. It is for
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
			record, err = d.writtenOwner(ctx)
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
	return nil, lease.Refusal()
}

// Refusal is what any other session of this process is told that asks for the run.
func (l *Lease) Refusal() *OwnedError {
	return &OwnedError{RunID: l.run.ID, Host: thisMachine().host, PID: os.Getpid(), SessionID: l.SessionID, Reason: OwnedBySession}
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
	if state := d.judge(record); state != OwnerDead && !force {
		return nil, d.owned(record, refusals[state])
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
	if _, pilothouse, err := d.identityOf(record); pilothouse || err != nil || record.PIDStart == nil {
		return false
	}
	here := thisMachine()
	return record.Host == here.host && record.PID == os.Getpid() &&
		startedAt(*record.PIDStart, record.PID, inspectProcess(record.PID))
}

func (d RunDir) adopt(record OwnerRecord, sessionID string) (*Lease, error) {
	lease := &Lease{Token: record.ProcessToken, Generation: record.Generation, SessionID: sessionID, run: d, place: d.place()}
	if tokenPattern().MatchString(lease.Token) {
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
	lease := &Lease{Token: newToken(), Generation: 1, SessionID: sessionID, run: d, place: d.place()}
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
	lease.keep()
	d.clearDead(lease.Token)
	return lease, nil
}

// showLife writes who we are and takes the lock on it that the kernel holds for us
// until we die.
func (l *Lease) showLife() error {
	l.alive = flock.New(l.run.signOfLifePath(l.Token), flock.SetFlag(os.O_RDWR))
	if err := l.run.writeIdentity(l.Token); err != nil {
		return fmt.Errorf("acquire run: %w", err)
	}
	ok, err := l.alive.TryLock()
	if err == nil && !ok {
		err = ErrLocked
	}
	if err != nil {
		return fmt.Errorf("acquire run: %w", err)
	}
	return nil
}

// Assert tells whether the lease still counts. Errors: *LostOwnerError (also inside a
// *MovedError) when it does not, *CorruptError when that cannot be said.
func (l *Lease) Assert() error {
	if err := l.here(); err != nil {
		return err
	}
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
