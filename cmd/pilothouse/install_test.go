package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"pilothouse/deploy/pi"
)

// extension is what a version of the program carries.
func extension(files map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

var (
	first  = extension(map[string]string{"index.ts": "one", "old.ts": "old", "skills/plan/SKILL.md": "skill"})
	second = extension(map[string]string{"index.ts": "two", "skills/plan/SKILL.md": "skill", "skills/more/SKILL.md": "more"})
)

func installed(t *testing.T, dir string, files fs.FS) *installation {
	t.Helper()
	i := &installation{dir: dir}
	if err := i.install(files, "v1", "/opt/pilothouse"); err != nil {
		t.Fatal(err)
	}
	return i
}

// tree are the files below a directory with what is in them, without the manifest.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == manifestName {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return found
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestInstallingTwiceWritesOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "extension")
	if i := installed(t, dir, first); len(i.written) != 3 {
		t.Errorf("written %v, want three files", i.written)
	}
	if i := installed(t, dir, first); len(i.written)+len(i.removed)+len(i.kept) != 0 {
		t.Errorf("the second time wrote %v, removed %v, kept %v", i.written, i.removed, i.kept)
	}
	want := map[string]string{"index.ts": "one", "old.ts": "old", "skills/plan/SKILL.md": "skill"}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestAnotherVersionReplacesTheEarlierOne(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "extension")
	installed(t, dir, first)
	i := installed(t, dir, second)
	if diff := cmp.Diff([]string{"old.ts"}, i.removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	want := map[string]string{"index.ts": "two", "skills/plan/SKILL.md": "skill", "skills/more/SKILL.md": "more"}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestFilesOfOthersAreSetAsideAndNeverLost(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "extension")
	installed(t, dir, first)
	overwrite(t, filepath.Join(dir, "index.ts"), "mine")
	overwrite(t, filepath.Join(dir, "old.ts"), "mine too")
	overwrite(t, filepath.Join(dir, "notes.md"), "never ours")
	installed(t, dir, second)
	overwrite(t, filepath.Join(dir, "index.ts"), "mine again")
	i := installed(t, dir, second)
	if diff := cmp.Diff([]string{filepath.Join(dir, "index.ts.changed-2")}, i.kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"index.ts": "two", "index.ts.changed-1": "mine", "index.ts.changed-2": "mine again", "old.ts": "mine too", "notes.md": "never ours",
		"skills/plan/SKILL.md": "skill", "skills/more/SKILL.md": "more",
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestRemovingLeavesWhatInstallHasNotWritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "extension")
	installed(t, dir, first)
	overwrite(t, filepath.Join(dir, "index.ts"), "mine")
	overwrite(t, filepath.Join(dir, "skills", "plan", "notes.md"), "never ours")
	i := &installation{dir: dir}
	if err := i.uninstall(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "index.ts")}, i.kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"index.ts": "mine", "skills/plan/notes.md": "never ours"}, tree(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestRemovingAnUnchangedExtensionLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "extension")
	installed(t, dir, first)
	for range 2 { // the second time there is nothing
		if err := (&installation{dir: dir}).uninstall(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is left: %v, %v", tree(t, dir), err)
	}
}

func TestAnInstallationThatACrashCutShortIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "extension")
	installed(t, dir, first)
	manifest := filepath.Join(dir, manifestName)
	before, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	installed(t, dir, second)
	overwrite(t, manifest, string(before)) // it comes last
	i := installed(t, dir, second)
	if len(i.written)+len(i.kept) != 0 {
		t.Errorf("written %v, kept %v", i.written, i.kept)
	}
}

func TestALinkedCheckoutIsNotTouched(t *testing.T) {
	t.Parallel()
	checkout, place := t.TempDir(), filepath.Join(t.TempDir(), "extension")
	overwrite(t, filepath.Join(checkout, "index.ts"), "work")
	if err := os.Symlink(checkout, place); err != nil {
		t.Fatal(err)
	}
	i := &installation{dir: place}
	if err := i.install(first, "v1", "/opt/pilothouse"); !errors.Is(err, errForeign) {
		t.Errorf("install says %v", err)
	}
	if err := i.uninstall(); !errors.Is(err, errForeign) {
		t.Errorf("uninstall says %v", err)
	}
	if diff := cmp.Diff(map[string]string{"index.ts": "work"}, tree(t, checkout)); diff != "" {
		t.Errorf("the checkout (-want +got):\n%s", diff)
	}
}

func TestAManifestCannotNameFilesElsewhere(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "extension")
	installed(t, dir, first)
	overwrite(t, filepath.Join(base, "victim"), "keep")
	overwrite(t, filepath.Join(dir, manifestName), `{"files":{"../victim":"`+digestOf([]byte("keep"))+`"}}`)
	if err := (&installation{dir: dir}).uninstall(); err == nil || !strings.Contains(err.Error(), "not in its directory") {
		t.Errorf("uninstall says %v", err)
	}
	if _, err := os.Stat(filepath.Join(base, "victim")); err != nil {
		t.Errorf("a file elsewhere is gone: %v", err)
	}
}

func TestTheProgramCarriesAWholeExtension(t *testing.T) {
	t.Parallel()
	var names []string
	err := fs.WalkDir(pi.Files(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "index.ts", "skills/planning/SKILL.md", "skills/planning/workflow.md"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing among %v", name, names)
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, "embed.go") || strings.HasSuffix(name, "tsconfig.json") {
			t.Errorf("%s does not belong into an installation", name)
		}
	}
}

func TestAnOldPiIsToldFromOneThatLoadsTheExtension(t *testing.T) {
	t.Parallel()
	for version, old := range map[string]bool{"1.6.0": false, "v1.10.2": false, "2.0.0": false, "1.5.9": true, "0.73.1": true, "nightly": false, "": false} {
		if got := tooOld(version) != ""; got != old {
			t.Errorf("Pi %q is too old: %t, want %t", version, got, old)
		}
	}
}
