package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"pilothouse/store"
)

func TestOnlyTheCompactionConfigOfTheRepositoryCounts(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "pi-vcc-config.json")
	if err := os.WriteFile(foreign, []byte(`{"smartKeepTail":false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PI_VCC_CONFIG_PATH", foreign)
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.MkdirAll(filepath.Join(home, ".pi", "agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".pi", "agent", "pi-vcc-config.json"), []byte(`{"smartKeepTail":false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	root := ensure(t, newRepo(t))
	if got, err := root.LoadCompactionConfig(); err != nil || got != store.DefaultCompactionConfig() {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestASnapshotReplacesWhatIsThereWithAPrivateFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "snapshot.json")
	if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteCompactionSnapshot(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "new" {
		t.Errorf("%q, %v", data, err)
	}
	blocked := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteCompactionSnapshot(blocked, nil); err == nil {
		t.Error("a folder was replaced")
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 2 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}
