package store

import (
	"errors"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// judge tells whether the process of an owner record still lives. Where that cannot
// be proven either way it is taken to live: a wrong death would make two owners.
//
// Of an owner that is a pilothouse the kernel knows best: it holds a lock until it
// dies, suspended or not, in whatever pid namespace. Otherwise the process id decides,
// together with the time the process started, because ids are used again.
func (d RunDir) judge(record OwnerRecord) OwnerState {
	here := thisMachine()
	owner, ours, err := d.identityOf(record)
	sameKernel := ours && owner.BootID != "" && owner.BootID == here.bootID
	switch {
	case err != nil:
		return OwnerUnverifiable
	case !sameKernel && record.Host != here.host:
		return OwnerElsewhere
	case !ours:
		return judgeProcess(record)
	case !sameKernel && owner.MachineID != "" && here.machineID != "" && owner.MachineID != here.machineID:
		return OwnerElsewhere
	}
	switch held, err := d.signOfLife(record.ProcessToken); {
	case held:
		return OwnerAlive
	case err == nil:
		return OwnerDead
	default:
		return OwnerUnverifiable
	}
}

// signOfLife tells whether somebody holds the lock that belongs to a token.
func (d RunDir) signOfLife(token string) (held bool, err error) {
	lock := flock.New(d.signOfLifePath(token), flock.SetFlag(os.O_RDONLY))
	// A shared lock, so that two who look at once do not see each other.
	free, err := lock.TryRLock()
	return err == nil && !free, errors.Join(err, lock.Close())
}

// judgeProcess judges the owner by what the shared format knows of it (spec:
// ownership 3.2).
func judgeProcess(record OwnerRecord) OwnerState {
	process := inspectProcess(record.PID)
	switch {
	case !process.exists:
		return OwnerDead
	case record.PIDStart == nil || startedAt(*record.PIDStart, record.PID, process):
		return OwnerAlive
	default:
		return OwnerDead // the id belongs to another process now
	}
}

// startedAt tells whether recorded can be the start of the process. The text depends
// on the language and the time zone of whoever wrote it, and moves with steps of the
// clock, so only what cannot be explained by these counts as another start.
func startedAt(recorded string, pid int, process processInfo) bool {
	if process.started.IsZero() || sameStart(recorded, process.started) {
		return true
	}
	now, ok := psStart(pid)
	return ok && now == recorded
}

var (
	clockPattern = lazily(`\b(\d{1,2}:\d\d:\d\d)\b`)
	yearPattern  = lazily(`\b(\d{4})\b`)
)

const (
	clockTolerance = 2 * time.Second
	zoneStep       = 15 * time.Minute // all time zones are multiples of it
	widestZone     = 14 * time.Hour
)

// sameStart compares a text of `ps -o lstart=` with an instant.
func sameStart(recorded string, started time.Time) bool {
	started = started.UTC()
	if at, err := time.Parse("Mon Jan _2 15:04:05 2006", recorded); err == nil {
		return nearZone(at.Sub(started))
	}
	// Another language: the digits of the clock and the year remain.
	clock, year := clockPattern().FindString(recorded), yearPattern().FindString(recorded)
	at, err := time.Parse("2006 15:04:05", year+" "+clock)
	if err != nil {
		return false
	}
	if years := at.Year() - started.Year(); years < -1 || years > 1 {
		return false
	}
	ofDay := time.Date(at.Year(), 1, 1, started.Hour(), started.Minute(), started.Second(), 0, time.UTC)
	return onZoneStep(at.Sub(ofDay))
}

func nearZone(difference time.Duration) bool {
	return difference.Abs() <= widestZone+clockTolerance && onZoneStep(difference)
}

func onZoneStep(difference time.Duration) bool {
	rest := difference.Abs() % zoneStep
	return rest <= clockTolerance || rest >= zoneStep-clockTolerance
}
