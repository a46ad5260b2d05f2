package ownerrace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"pilothouse/store"
)

// race acquires and releases the run again and again until its input ends. The
// arguments are the state root, the run, the witness and the journal.
//
// The witness proves exclusiveness without any code of ours: a lock of the other
// kind, which the kernel takes from a killed process when it closes its files, and
// so before it frees locks of the kind that an owner's sign of life is
// (filp_close comes before __fput).
func race(name string, args []string) error {
	dir, err := store.Root{Dir: args[0]}.Run(args[1])
	if err != nil {
		return err
	}
	witness, err := os.OpenFile(args[2], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer witness.Close()
	journal, err := os.OpenFile(args[3], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer journal.Close()
	var over atomic.Bool
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		over.Store(true)
	}()
	seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for !over.Load() {
		_, state, err := dir.Owner()
		if err != nil {
			return fmt.Errorf("look at the owner: %w", err)
		}
		if state == store.OwnerAlive && random.IntN(4) > 0 { // the others ask all the same, and are refused
			time.Sleep(rand.N(4 * time.Millisecond))
			continue
		}
		if random.IntN(20) == 0 {
			dieWithin(random, 15*time.Millisecond) // on the way to the run, or with it
		}
		lease, err := dir.Acquire(context.Background(), name)
		var owned *store.OwnedError
		switch {
		case errors.As(err, &owned) && owned.Reason == store.OwnedAlive:
			time.Sleep(rand.N(4 * time.Millisecond))
		case err != nil:
			return fmt.Errorf("acquire: %w", err)
		default:
			if random.IntN(5) == 0 {
				dieWithin(random, 8*time.Millisecond) // with the run, or on the way out
			}
			if err := hold(name, lease, witness, journal); err != nil {
				return fmt.Errorf("generation %d: %w", lease.Generation, err)
			}
		}
	}
	return nil
}

// dieWithin kills this process at some moment from now on.
func dieWithin(random *rand.Rand, most time.Duration) {
	time.AfterFunc(time.Duration(random.Int64N(int64(most))), func() { _ = unix.Kill(os.Getpid(), unix.SIGKILL) })
}

// hold is the time of one owner, from its acquisition to its release.
func hold(name string, lease *store.Lease, witness, journal *os.File) error {
	if err := unix.FcntlFlock(witness.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		other := unix.Flock_t{Type: unix.F_WRLCK}
		_ = unix.FcntlFlock(witness.Fd(), unix.F_GETLK, &other)
		return fmt.Errorf("process %d is at work on the run: %w", other.Pid, err)
	}
	if err := note(journal, acquired, name, lease); err != nil {
		return err
	}
	for range rand.IntN(4) {
		if err := lease.Assert(); err != nil {
			return err
		}
		time.Sleep(rand.N(time.Millisecond))
	}
	if err := note(journal, releasing, name, lease); err != nil {
		return err
	}
	if err := unix.FcntlFlock(witness.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_UNLCK}); err != nil {
		return err
	}
	if released, err := lease.Release(); !released || err != nil {
		return fmt.Errorf("release: %v, %w", released, err)
	}
	return note(journal, released, name, lease)
}

// note appends one record in one write.
func note(journal io.Writer, what, name string, lease *store.Lease) error {
	_, err := fmt.Fprintf(journal, "%s %s %s %d\n", what, name, lease.Token, lease.Generation)
	return err
}
