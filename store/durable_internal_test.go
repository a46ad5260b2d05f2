package store

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// recordingDirectory notes the order of the calls and lets one of them fail.
type recordingDirectory struct {
	directory
	calls []string
	fail  string
	with  error // ENOSPC by default
	times int   // how often it fails, for ever by default
}

func (d *recordingDirectory) call(name string) error {
	d.calls = append(d.calls, name)
	if d.fail != name {
		return nil
	}
	if d.times > 0 {
		if d.times--; d.times == 0 {
			d.fail = ""
		}
	}
	if d.with != nil {
		return d.with
	}
	return syscall.ENOSPC
}

func (d *recordingDirectory) create(name string, mode fs.FileMode) (durableFile, error) {
	if err := d.call("create"); err != nil {
		return nil, err
	}
	file, err := d.directory.create(name, mode)
	return recordingFile{file, d}, err
}

func (d *recordingDirectory) rename(from, to string) error {
	if err := d.call("rename"); err != nil {
		return err
	}
	return d.directory.rename(from, to)
}

func (d *recordingDirectory) link(from, to string) error {
	if err := d.call("link"); err != nil {
		return err
	}
	return d.directory.link(from, to)
}

func (d *recordingDirectory) remove(name string) error {
	if err := d.call("remove"); err != nil {
		return err
	}
	return d.directory.remove(name)
}

func (d *recordingDirectory) sync() error {
	if err := d.call("sync directory"); err != nil {
		return err
	}
	return d.directory.sync()
}

type recordingFile struct {
	durableFile
	dir *recordingDirectory
}

func (f recordingFile) Write(data []byte) (int, error) {
	if err := f.dir.call("write"); err != nil {
		n, _ := f.durableFile.Write(data[:len(data)/2])
		return n, err
	}
	return f.durableFile.Write(data)
}

func (f recordingFile) Sync() error {
	if err := f.dir.call("sync file"); err != nil {
		return err
	}
	return f.durableFile.Sync()
}

func (f recordingFile) Close() error {
	return errors.Join(f.dir.call("close"), f.durableFile.Close())
}

func recording(t *testing.T, fail string) (*recordingDirectory, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &recordingDirectory{directory: rootDirectory{root}, fail: fail}, dir
}

func TestAReplacementIsSyncedBeforeItGetsItsNameAndItsNameAfter(t *testing.T) {
	t.Parallel()
	dir, path := recording(t, "")
	if err := replaceFile(dir, "f", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"create", "write", "sync file", "close", "rename", "sync directory"}; !slices.Equal(dir.calls, want) {
		t.Errorf("got %v", dir.calls)
	}
	if content, err := os.ReadFile(filepath.Join(path, "f")); string(content) != "new" || err != nil {
		t.Errorf("got %q, %v", content, err)
	}
}

func TestANewFileIsSyncedBeforeItGetsItsNameAndItsNameAfter(t *testing.T) {
	t.Parallel()
	dir, _ := recording(t, "")
	if err := createFile(dir, "f", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"create", "write", "sync file", "close", "link", "remove", "sync directory"}; !slices.Equal(dir.calls, want) {
		t.Errorf("got %v", dir.calls)
	}
}

func TestWhicheverStepOfAWriteFailsTheOldFileIsWholeAndNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"create", "write", "sync file", "close", "rename"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			dir, path := recording(t, step)
			if err := os.WriteFile(filepath.Join(path, "f"), []byte("old"), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := replaceFile(dir, "f", []byte("newer")); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("got %v", err)
			}
			content, err := os.ReadFile(filepath.Join(path, "f"))
			if string(content) != "old" || err != nil {
				t.Errorf("got %q, %v", content, err)
			}
			if entries, _ := os.ReadDir(path); len(entries) != 1 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
}

// Faults E64: nothing is overwritten in place, whatever fails and why.
func TestWhateverTheReasonOfAFailureIsTheOldFileIsWhole(t *testing.T) {
	t.Parallel()
	steps := map[string][]string{
		"replace": {"create", "write", "sync file", "close", "rename"},
		"create":  {"create", "write", "sync file", "close", "link"},
	}
	for kind, calls := range steps {
		for _, step := range calls {
			for _, reason := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EXDEV, syscall.EDQUOT, syscall.EIO, syscall.EBUSY} {
				dir, path := recording(t, step)
				dir.with = reason
				want := map[string]string{"other": "other"}
				write, name := createFile, "new"
				if kind == "replace" {
					write, name, want["f"] = replaceFile, "f", "old"
				}
				for name, content := range want {
					if err := os.WriteFile(filepath.Join(path, name), []byte(content), 0o640); err != nil {
						t.Fatal(err)
					}
				}
				if err := write(dir, name, []byte("newer")); !errors.Is(err, reason) {
					t.Errorf("%s, %v at %s: got %v", kind, reason, step, err)
				}
				got := map[string]string{}
				entries, err := os.ReadDir(path)
				if err != nil {
					t.Fatal(err)
				}
				for _, entry := range entries {
					content, err := os.ReadFile(filepath.Join(path, entry.Name()))
					if err != nil {
						t.Fatal(err)
					}
					got[entry.Name()] = string(content)
				}
				if !maps.Equal(got, want) {
					t.Errorf("%s, %v at %s: left %v", kind, reason, step, got)
				}
			}
		}
	}
}

// Faults E78: one failure that passes costs nobody a result.
func TestAWriteThatFailsOnceForAPassingReasonIsTriedAgainFromTheStart(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"create", "write", "sync file", "close", "rename"} {
		for times, want := range map[int]error{1: nil, 2: nil, 3: syscall.EMFILE} {
			dir, path := recording(t, step)
			dir.with, dir.times = syscall.EMFILE, times
			if err := replaceFile(dir, "f", []byte("new")); !errors.Is(err, want) {
				t.Errorf("%d failures at %s: got %v, want %v", times, step, err, want)
			}
			content, err := os.ReadFile(filepath.Join(path, "f"))
			if there := err == nil && string(content) == "new"; there != (want == nil) {
				t.Errorf("%d failures at %s: got %q, %v", times, step, content, err)
			}
			if creates := strings.Count(strings.Join(dir.calls, ","), "create"); creates != min(times+1, 3) {
				t.Errorf("%d failures at %s: %d temporary files", times, step, creates)
			}
		}
	}
}

func TestAFailedSyncOfTheDirectoryIsNotRepeated(t *testing.T) {
	t.Parallel()
	dir, _ := recording(t, "sync directory")
	dir.with, dir.times = syscall.EIO, 1
	if err := replaceFile(dir, "f", nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
}

func TestAFailedSyncOfTheDirectoryIsReported(t *testing.T) {
	t.Parallel()
	dir, _ := recording(t, "sync directory")
	if err := replaceFile(dir, "f", nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("replace: got %v", err)
	}
	if err := createFile(dir, "g", nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("create: got %v", err)
	}
}

func TestCreateFileNeverTouchesWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := CreateFile(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := CreateFile(path, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if content, _ := os.ReadFile(path); string(content) != "first" {
		t.Errorf("got %q", content)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestNewFilesArePrivateAndReplacedOnesKeepTheirMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"new": 0, "shared": 0o664} {
		path := filepath.Join(dir, name)
		want := privateFile
		if mode != 0 {
			if err := os.WriteFile(path, nil, mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			want = mode
		}
		if err := WriteFile(path, []byte(name)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v", name, info.Mode(), err)
		}
	}
}

func TestMakeDirectoryRefusesAFileInTheWay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{"a/b/c": true, "f": false, "f/g": false} {
		if err := makeDirectory(filepath.Join(dir, path), privateDir); (err == nil) != ok {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestADirectoryIsMadeBelowABaseThatIsThereOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	base := filepath.Join(dir, "base")
	if err := os.Mkdir(base, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := makeBelow(base, filepath.Join(base, "a/b/c"), privateDir); err != nil {
			t.Error(err)
		}
	}
	if err := os.Rename(base, filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(base, "a"), filepath.Join(base, "a/b/c")} {
		if err := makeBelow(base, path, privateDir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if _, err := os.Lstat(base); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the base was made: %v", err)
	}
}

func TestAnLstartIsComparedAcrossLanguagesZonesAndSmallClockSteps(t *testing.T) {
	t.Parallel()
	started := mustStamp(t, "2026-11-30T02:55:10Z")
	for recorded, want := range map[string]bool{
		"Mon Nov 30 02:55:10 2026":   true,
		"Mon Nov 30 02:55:12 2026":   true,
		"Mon Nov 30 02:55:13 2026":   false,
		"Mon Nov 30 08:40:10 2026":   true, // Kathmandu
		"Sun Nov 29 18:55:09 2026":   true, // the west coast
		"Mon Nov 30 02:57:10 2026":   false,
		"Sat Nov 28 02:55:10 2026":   false,
		"Thu Jan  1 00:00:00 1970":   false,
		"lun. 30 nov. 03:55:10 2026": true,
		"一 11月 30 10:55:10 2026":     true,
		"一 11月 30 10:56:10 2026":     false,
		"一 11月 30 10:55:10 2020":     false,
		"bogus":                      false,
		"":                           false,
	} {
		if got := sameStart(recorded, started); got != want {
			t.Errorf("%q: got %v", recorded, got)
		}
	}
}

func TestTokensAreUUIDsWithoutDashes(t *testing.T) {
	t.Parallel()
	a, b := newToken(), newToken()
	if a == b || !tokenPattern().MatchString(a) || a[12] != '4' || !strings.ContainsRune("89ab", rune(a[16])) {
		t.Errorf("got %s, %s", a, b)
	}
}

func mustStamp(t *testing.T, stamp string) time.Time {
	t.Helper()
	at, ok := ParseStamp(stamp)
	if !ok {
		t.Fatal(stamp)
	}
	return at
}
