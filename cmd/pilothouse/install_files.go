package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"pilothouse/store"
)

// manifestName is the file beside an installed extension that says what was installed.
// The extension reads it too: the program in it starts the daemon.
const manifestName = "installed.json"

// manifest describes an installed extension.
type manifest struct {
	Version string `json:"version"`
	Program string `json:"program"` // absolute
	// Files are the SHA-256 digests of what was written, by slash-separated path below
	// the directory. A file with another digest was changed by somebody else.
	Files map[string]string `json:"files"`
}

// installation is an extension on disk, and what installing or removing has done to it.
type installation struct {
	dir     string
	written []string
	removed []string
	kept    []string // files of others: where they are now
}

// errForeign refuses a directory that is not an installation.
var errForeign = errors.New("it is a symbolic link")

// install writes files below the directory, and removes those that an earlier version
// has written and this one does not have. Files that somebody has changed are set
// aside. The manifest comes last: what a crash leaves without one is written again, or
// is what would be written.
func (i *installation) install(files fs.FS, version, program string) error {
	earlier, err := i.load()
	if err != nil {
		return err
	}
	next := manifest{Version: version, Program: program, Files: map[string]string{}}
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		next.Files[name] = digestOf(data)
		return i.place(name, data, earlier.Files[name])
	})
	if err != nil {
		return err
	}
	for _, name := range stale(earlier, next) {
		if err := i.remove(name, earlier.Files[name]); err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	if err := store.WriteFile(filepath.Join(i.dir, manifestName), append(data, '\n')); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	return nil
}

// uninstall removes what install has written, and the directories that are empty then.
func (i *installation) uninstall() error {
	earlier, err := i.load()
	if err != nil {
		return err
	}
	for _, name := range stale(earlier, manifest{}) {
		if err := i.remove(name, earlier.Files[name]); err != nil {
			return err
		}
	}
	err = os.Remove(filepath.Join(i.dir, manifestName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the manifest: %w", err)
	}
	_ = os.Remove(i.dir) // somebody else's files may be in it
	return nil
}

// load reads the manifest; without one nothing of ours is there.
func (i *installation) load() (manifest, error) {
	var m manifest
	if info, err := os.Lstat(i.dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return m, errForeign
	}
	data, err := os.ReadFile(filepath.Join(i.dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("read the manifest: %w", err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read the manifest %s: %w", filepath.Join(i.dir, manifestName), err)
	}
	for name := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return m, fmt.Errorf("the manifest names %q, which is not in its directory; remove %s", name, filepath.Join(i.dir, manifestName))
		}
	}
	return m, nil
}

// stale are the files of a manifest that the next one does not have, those in deeper
// directories first.
func stale(earlier, next manifest) []string {
	var names []string
	for name := range earlier.Files {
		if next.Files[name] == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names
}

// place makes name have the data. What is there goes when it is of the digest that was
// installed before, else it is set aside.
func (i *installation) place(name string, data []byte, before string) error {
	path := filepath.Join(i.dir, filepath.FromSlash(name))
	found, err := digestAt(path)
	switch {
	case err != nil:
		return err
	case found == digestOf(data):
		return nil
	case found != "" && found != before:
		if err := i.setAside(path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the directory of the extension: %w", err)
	}
	if err := store.WriteFile(path, data); err != nil {
		return fmt.Errorf("write the extension: %w", err)
	}
	i.written = append(i.written, name)
	return nil
}

// remove removes a file that still is what was installed, and its directory when that
// is empty then.
func (i *installation) remove(name, installed string) error {
	path := filepath.Join(i.dir, filepath.FromSlash(name))
	found, err := digestAt(path)
	switch {
	case err != nil:
		return err
	case found == "":
		return nil
	case found != installed:
		i.kept = append(i.kept, path)
		return nil
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the extension: %w", err)
	}
	i.removed = append(i.removed, name)
	i.removeEmpty(filepath.Dir(path))
	return nil
}

// removeEmpty removes a directory, and those above it, as far as nothing is in them.
func (i *installation) removeEmpty(dir string) {
	if dir != i.dir && os.Remove(dir) == nil {
		i.removeEmpty(filepath.Dir(dir))
	}
}

// setAside keeps a file that somebody has changed, under a name that Pi does not load.
func (i *installation) setAside(path string) error {
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.changed-%d", path, n)
		err := os.Link(path, aside)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			return fmt.Errorf("set a changed file aside: %w", err)
		}
		i.kept = append(i.kept, aside)
		return nil
	}
}

// digestAt is the digest of a file, "" when there is none.
func digestAt(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read what is installed: %w", err)
	}
	return digestOf(data), nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
