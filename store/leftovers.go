package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// staleTemporary is the age at which a temporary file belongs to nobody: a write
	// takes milliseconds, and a process that was suspended in it for longer only gets
	// an error.
	staleTemporary = time.Hour
	// staleScratch is the age at which nobody reads the prompt of a child any more.
	staleScratch = 24 * time.Hour
)

// RemoveLeftovers removes what processes that were killed in the middle of a write
// have left in the run and in the places that all runs share, once it is old enough
// to be nobody's. What cannot be removed stays; the error tells.
func (d RunDir) RemoveLeftovers(now time.Time) error {
	adHoc := d.Root.AdHoc()
	var failures []error
	for _, dir := range []string{
		d.Dir, d.path(reviewsName), d.path(privateName), filepath.Join(d.path(privateName), "rounds"),
		d.Root.Dir, filepath.Join(d.Root.Dir, privateName),
		adHoc.Dir, filepath.Join(adHoc.Dir, reviewsName), filepath.Join(adHoc.Dir, "rounds"),
	} {
		failures = append(failures, removeStale(dir, isTemporary, now.Add(-staleTemporary)))
	}
	failures = append(failures, removeStale(filepath.Join(d.Root.Dir, "tmp"), isScratch, now.Add(-staleScratch)))
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("remove leftovers: %w", err)
	}
	return nil
}

// removeStale removes what has such a name and was not changed since before.
func removeStale(dir string, isOne func(name string) bool, before time.Time) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var failures []error
	for _, entry := range entries {
		if !isOne(entry.Name()) {
			continue
		}
		info, err := entry.Info()
		if err == nil && info.ModTime().Before(before) {
			err = os.RemoveAll(filepath.Join(dir, entry.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // somebody else was quicker
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// isTemporary tells the names that writeTemp makes, .<name>.<process>.<random>.tmp
// with twelve digits at random.
func isTemporary(name string) bool {
	parts := strings.Split(name, ".")
	n := len(parts)
	return n >= 5 && parts[0] == "" && parts[n-1] == "tmp" &&
		len(parts[n-2]) == 12 && strings.Trim(parts[n-2], "0123456789abcdef") == "" &&
		parts[n-3] != "" && strings.Trim(parts[n-3], "0123456789") == ""
}

// isScratch tells the directory of one child's prompt, lane-<number>. Other programs
// keep what they like beside it.
func isScratch(name string) bool {
	number, ok := strings.CutPrefix(name, "lane-")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}
