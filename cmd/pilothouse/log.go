package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// maxLogBytes is how large the log of a daemon grows. Together with the old one, which
// is kept, it takes twice that.
const maxLogBytes = 10 << 20

// detachedLog is the log of a detached daemon in the state directory, unless it is
// given another one.
const detachedLog = "daemon.log"

// daemonLog is where the daemon logs to, and how that is closed.
func (a *app) daemonLog(file string) (*slog.Logger, func() error, error) {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if a.verbose {
		options.Level = slog.LevelDebug
	}
	if file == "" {
		return slog.New(slog.NewTextHandler(a.err, options)), func() error { return nil }, nil
	}
	log, err := openLog(file)
	if err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewJSONHandler(&boundedLog{file: log, limit: maxLogBytes}, options)), log.Close, nil
}

// openLog opens a log for appending that only this user can read. What is no file, such
// as /dev/stderr, is left as it is.
func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the log: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = file.Chmod(0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("protect the log: %w", err), file.Close())
	}
	return file, nil
}

// boundedLog writes lines to a log that does not grow for ever: one that is full is
// copied to PATH.1, in place of the copy before, and emptied. It stays the same file, so
// that whoever else holds it open goes on in it: the streams of a detached daemon, to
// which a crash is written, a reader that follows, another daemon of the same user. A
// line that another process adds in the moment between copy and emptying is lost.
type boundedLog struct {
	file  *os.File
	limit int64 // bytes

	mu sync.Mutex
}

// Write adds one line, if need be to a log that it has emptied before. A log that could
// not be kept is emptied all the same, since a full disk must not stop the daemon from
// telling so; the line before says what was lost.
func (l *boundedLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, full := l.full(len(line)); full {
		l.turn(len(line))
	}
	return l.file.Write(line)
}

// full tells the size of the log, and whether that many bytes have no room in it.
func (l *boundedLog) full(more int) (size int64, full bool) {
	info, err := l.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	size = info.Size()
	return size, size > 0 && size+int64(more) > l.limit
}

// turn keeps the log as the old one and begins again. Of two daemons one does.
func (l *boundedLog) turn(more int) {
	fd := int(l.file.Fd())
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return // the other one is at it
	}
	defer func() { _ = unix.Flock(fd, unix.LOCK_UN) }() // closing it would do so too
	size, full := l.full(more)
	if !full {
		return // the other one has done it
	}
	kept := l.keep(size)
	if err := l.file.Truncate(0); err != nil {
		kept = errors.Join(kept, err)
	}
	if kept != nil {
		slog.New(slog.NewJSONHandler(l.file, nil)).Warn("the old log is lost", "error", kept)
	}
}

// keep makes what was written last the old log, or leaves the one there is.
func (l *boundedLog) keep(size int64) error {
	path := l.file.Name()
	old, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp") // for this user only
	if err != nil {
		return err
	}
	_, err = io.Copy(old, io.NewSectionReader(l.file, max(0, size-l.limit), min(size, l.limit)))
	if err = errors.Join(err, old.Close()); err == nil {
		err = os.Rename(old.Name(), path+".1")
	}
	if err != nil {
		return errors.Join(err, os.Remove(old.Name()))
	}
	return nil
}
