//go:build unix

package integration_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// nobody owns no files on any system.
const nobody = 65534

// startUnprivileged starts pilothouse as a user whom permissions bind: the
// superuser passes them all. The workspace becomes that user's, then prepare runs.
func (w *workspace) startUnprivileged(prepare func(), args ...string) *job {
	w.t.Helper()
	if os.Getuid() != 0 {
		prepare()
		return w.start(args...)
	}
	for _, dir := range []string{w.Dir, filepath.Dir(homeOf(w.Env))} {
		w.giveAway(dir)
	}
	prepare()
	j := w.prepared(args...)
	j.Cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	j.Begin()
	return j
}

// giveAway makes a directory and all in it nobody's.
func (w *workspace) giveAway(dir string) {
	w.t.Helper()
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	}); err != nil {
		w.t.Fatal(err)
	}
}
