package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// ErrLocked tells that another process kept one of our lock files for longer than
// we are willing to wait; nothing was changed.
var ErrLocked = errors.New("locked by another process")

// lockPatience bounds the wait for a lock. The sections it guards take
// milliseconds, so only a suspended process can hold one that long.
const lockPatience = 20 * time.Second

// withLock runs work while holding the lock file, or directory, at path. The kernel frees the lock
// when the process dies, so it cannot go stale, and the file is never deleted, so
// all agree on which file it is. The parent directory must exist.
func withLock(ctx context.Context, path string, work func() error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockPatience, ErrLocked)
	defer cancel()
	flag := os.O_CREATE | os.O_RDWR
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		flag = os.O_RDONLY
	}
	lock := flock.New(path, flock.SetFlag(flag), flock.SetPermissions(privateFile))
	for {
		held, err := lock.TryLock()
		if err != nil {
			return fmt.Errorf("lock %s: %w", path, err)
		}
		if held {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lock %s: %w", path, errors.Join(context.Cause(ctx), lock.Close()))
		case <-time.After(time.Millisecond + rand.N(4*time.Millisecond)):
		}
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return work()
}
