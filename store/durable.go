package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	privateDir  fs.FileMode = 0o700
	privateFile fs.FileMode = 0o600
)

// WriteFile replaces path with data. Once it returns nil the new content survives
// a power loss; when it fails the old content is intact. A concurrent reader sees
// the old or the new content, never a mixture. New files get mode 0600, replaced
// ones keep their mode. The parent directory must exist.
func WriteFile(path string, data []byte) error {
	return inDirectory(path, func(dir directory, name string) error { return replaceFile(dir, name, data) })
}

// CreateFile is [WriteFile] for a path that must not exist yet; if it does, the
// error matches [fs.ErrExist] and the file is untouched. Of several creators
// exactly one wins, and nobody ever sees an empty or partial file.
func CreateFile(path string, data []byte) error {
	return inDirectory(path, func(dir directory, name string) error { return createFile(dir, name, data) })
}

func inDirectory(path string, write func(directory, string) error) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	return write(rootDirectory{root}, filepath.Base(path))
}

// directory is the part of a file system a durable write needs; a test replaces it
// to record the order of the calls and to make one of them fail.
type directory interface {
	create(name string, mode fs.FileMode) (durableFile, error)
	stat(name string) (fs.FileInfo, error)
	rename(from, to string) error
	link(from, to string) error
	remove(name string) error
	sync() error
}

type durableFile interface {
	io.WriteCloser
	Chmod(fs.FileMode) error
	Sync() error
}

// pauses come before a write that failed for a passing reason is tried again.
var pauses = []time.Duration{10 * time.Millisecond, 50 * time.Millisecond}

// passing are failures that may not happen again a moment later: an interrupted call,
// a full table of open files, a file that somebody holds for a moment.
var passing = []syscall.Errno{
	syscall.EINTR, syscall.EAGAIN, syscall.EBUSY, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.ESTALE,
}

// passes tells whether one of the reasons of an error may be gone in a moment.
func passes(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains(passing, errno)
}

// replaceFile never falls back to overwriting in place: a failed rename must leave
// the old file whole. A failure that may pass is tried again with a new temporary
// file, since what became of the bytes of one whose sync failed is not known. The
// sync of the directory is not repeated: the second could succeed for the same reason.
func replaceFile(dir directory, name string, data []byte) error {
	err := renameOnto(dir, name, data)
	for _, pause := range pauses {
		if err == nil || !passes(err) {
			break
		}
		time.Sleep(pause)
		err = renameOnto(dir, name, data)
	}
	if err != nil {
		return err
	}
	return dir.sync()
}

func renameOnto(dir directory, name string, data []byte) error {
	mode := privateFile
	if info, err := dir.stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	temp, err := writeTemp(dir, name, mode, data)
	if err != nil {
		return err
	}
	if err := dir.rename(temp, name); err != nil {
		return errors.Join(err, dir.remove(temp))
	}
	return nil
}

func createFile(dir directory, name string, data []byte) error {
	temp, err := writeTemp(dir, name, privateFile, data)
	if err != nil {
		return err
	}
	linked := dir.link(temp, name)
	// A link leaves two names; the temporary one goes in either case.
	if err := errors.Join(linked, dir.remove(temp)); err != nil {
		return err
	}
	return dir.sync()
}

// writeTemp leaves a complete, synced file beside name and returns its unique
// name; after a failure nothing is left.
func writeTemp(dir directory, name string, mode fs.FileMode, data []byte) (string, error) {
	temp := fmt.Sprintf(".%s.%d.%s.tmp", name, os.Getpid(), randomHex(6))
	file, err := dir.create(temp, privateFile)
	if err != nil {
		return "", err
	}
	err = fillFile(file, mode, data)
	if err := errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, dir.remove(temp))
	}
	return temp, nil
}

func fillFile(file durableFile, mode fs.FileMode, data []byte) error {
	if mode != privateFile {
		if err := file.Chmod(mode); err != nil {
			return err
		}
	}
	if _, err := file.Write(data); err != nil {
		return err
	}
	return syncFile(file)
}

var syncs atomic.Int64

// Syncs is how often this process has asked the kernel to make a file or a directory
// durable.
func Syncs() int64 { return syncs.Load() }

func syncFile(file interface{ Sync() error }) error {
	syncs.Add(1)
	return file.Sync()
}

// rootDirectory confines every name to one directory, so that neither a name nor a
// link in it leads elsewhere.
type rootDirectory struct{ root *os.Root }

func (d rootDirectory) create(name string, mode fs.FileMode) (durableFile, error) {
	return d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}
func (d rootDirectory) stat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }
func (d rootDirectory) rename(from, to string) error          { return d.root.Rename(from, to) }
func (d rootDirectory) link(from, to string) error            { return d.root.Link(from, to) }
func (d rootDirectory) remove(name string) error              { return d.root.Remove(name) }

func (d rootDirectory) sync() error {
	dir, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(syncFile(dir), dir.Close())
}

func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(syncFile(dir), dir.Close())
}

// makeDirectory creates path and what is missing above it with the given mode and
// makes the new names durable. Directories that exist keep their mode.
func makeDirectory(path string, mode fs.FileMode) error { return makeBelow("", path, mode) }

// makeBelow is makeDirectory for a path in base, which itself is never made: when it
// is gone, as after the repository was moved, the error matches fs.ErrNotExist.
func makeBelow(base, path string, mode fs.FileMode) error {
	err := os.Mkdir(path, mode)
	switch {
	case err == nil:
		return syncDirectory(filepath.Dir(path))
	case errors.Is(err, fs.ErrNotExist) && filepath.Dir(path) != base && filepath.Dir(path) != path:
		if err := makeBelow(base, filepath.Dir(path), mode); err != nil {
			return err
		}
		return makeBelow(base, path, mode)
	case errors.Is(err, fs.ErrExist):
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

func randomHex(bytes int) string {
	raw := make([]byte, bytes)
	_, _ = rand.Read(raw) // documented never to fail
	return hex.EncodeToString(raw)
}
