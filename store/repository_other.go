//go:build unix && !linux

package store

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// spelledAsListed tells whether a path without links is what the system itself calls
// the directory, as git does. Where the case of letters or their composition does not
// count, the same directory has many spellings: only plain letters, each name as its
// directory lists it, are certain.
func spelledAsListed(path string) bool {
	if strings.ContainsFunc(path, func(r rune) bool { return r > '~' }) {
		return false
	}
	for dir := filepath.Clean(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		parent, err := os.Open(filepath.Dir(dir))
		if err != nil {
			return false
		}
		names, err := parent.Readdirnames(-1)
		_ = parent.Close() // only read
		if err != nil || !slices.Contains(names, filepath.Base(dir)) {
			return false
		}
	}
	return true
}
