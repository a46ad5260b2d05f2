package lanes_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/lanes"
)

const newPackage, oldPackage = "@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent"

// write makes a file of a tree, with its folders.
func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// machine lays out programs in a new folder, which becomes the working directory:
//
//	bin/pi        a program          new/…/cli.js  pi of the newer generation
//	my tools/pi   a program          old/…/cli.js  of the older one
//	newbin/pi     links to new       bin/node      a program
//	oldbin/pi     links to old       bad/          what is no program
func machine(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, name := range []string{"bin/pi", "my tools/pi", "bin/node", "next/pi"} {
		write(t, filepath.Join(dir, name), "#!/bin/sh\n", 0o755)
	}
	for generation, name := range map[string]string{"new": newPackage, "old": oldPackage} {
		root := filepath.Join(dir, generation, "node_modules", name)
		write(t, filepath.Join(root, "package.json"), `{"name":"`+name+`"}`, 0o644)
		write(t, filepath.Join(root, "dist/package.json"), `{"type":"module"}`, 0o644)
		write(t, filepath.Join(root, "dist/cli.js"), "#!/usr/bin/env node\n", 0o755)
		if err := os.MkdirAll(filepath.Join(dir, generation+"bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		link(t, filepath.Join(root, "dist/cli.js"), filepath.Join(dir, generation+"bin/pi"))
	}
	write(t, filepath.Join(dir, "bad/plain/pi"), "#!/bin/sh\n", 0o644)
	write(t, filepath.Join(dir, "bad/empty/pi"), "", 0o755)
	write(t, filepath.Join(dir, "bad/dir/pi/x"), "", 0o644)
	link(t, filepath.Join(dir, "nowhere"), filepath.Join(dir, "bad/dangling"))
	return dir
}

func TestTheWordsOfACommandAreRead(t *testing.T) {
	dir := machine(t)
	environ := []string{"PATH=/nowhere", "PATH=" + dir + "/missing:" + dir + "/bad/plain:" + dir + "/bin:" + dir + "/next", "HOME=" + dir, "TOOLS=" + dir + "/my tools"}
	in := func(name string) string { return filepath.Join(dir, name) }
	script := in("new/node_modules/" + newPackage + "/dist/cli.js")
	tests := []struct {
		name, words string
		want        lanes.Command
	}{
		{"a name on the PATH of the session", "pi", lanes.Command{Path: in("bin/pi")}},
		{"a path", in("bin/pi"), lanes.Command{Path: in("bin/pi")}},
		{"a path with a space, as it is", in("my tools/pi"), lanes.Command{Path: in("my tools/pi")}},
		{"a quoted path with a space and an argument", `"` + in("my tools/pi") + `" --offline`, lanes.Command{Path: in("my tools/pi"), Args: []string{"--offline"}}},
		{"an escaped space", strings.ReplaceAll(in("my tools/pi"), " ", `\ `), lanes.Command{Path: in("my tools/pi")}},
		{"a home", "~/bin/pi -x 'a b'", lanes.Command{Path: in("bin/pi"), Args: []string{"-x", "a b"}}},
		{"a variable of the session", `"$TOOLS/pi"`, lanes.Command{Path: in("my tools/pi")}},
		{"a relative path", "./bin/pi", lanes.Command{Path: in("bin/pi")}},
		{"a link to the newer generation", in("newbin/pi"), lanes.Command{Path: in("newbin/pi"), Untrusting: true}},
		{"a link to the older generation", in("oldbin/pi"), lanes.Command{Path: in("oldbin/pi")}},
		{"the newer generation's script", "node " + script, lanes.Command{Path: in("bin/node"), Args: []string{script}, Untrusting: true}},
		{
			"a relative script, which the child could not find", "node new/node_modules/" + newPackage + "/dist/cli.js --offline",
			lanes.Command{Path: in("bin/node"), Args: []string{script, "--offline"}, Untrusting: true},
		},
		{
			"the older generation's script", "node old/node_modules/" + oldPackage + "/dist/cli.js",
			lanes.Command{Path: in("bin/node"), Args: []string{in("old/node_modules/" + oldPackage + "/dist/cli.js")}},
		},
		{"a word that only looks like a script", "node gone.js bin", lanes.Command{Path: in("bin/node"), Args: []string{"gone.js", "bin"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := lanes.ParseCommand(test.words, environ)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestACommandThatCannotRunIsExplained(t *testing.T) {
	dir := machine(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	tests := []struct{ name, words, path, says string }{
		{"nothing", "", "", "it is empty"},
		{"a space", "  ", "", "it is empty"},
		{"empty quotes", `""`, "", "it is empty"},
		{"an open quote", `"pi`, "", "its quoting is not understood"},
		{"another program's output", "$(which pi)", "", "its quoting is not understood"},
		{"a name that is nowhere", "pj", in("bin"), `there is no program "pj" on the PATH`},
		{"a name without a PATH", "pi", "", `there is no program "pi" on the PATH`},
		{"a name in the working directory only", "pi", ":.:bin", `there is no program "pi" on the PATH`},
		{"a path that is not there", in("gone/pi"), "", in("gone/pi") + " does not exist"},
		{"a link to nothing", in("bad/dangling"), "", in("bad/dangling") + " does not exist"},
		{"a folder", in("bad/dir/pi"), "", in("bad/dir/pi") + " is a directory"},
		{"a file that is not executable", in("bad/plain/pi"), "", in("bad/plain/pi") + " is not executable"},
		{"an empty file", in("bad/empty/pi"), "", in("bad/empty/pi") + " is an empty file"},
		{"a file on the PATH that is not executable", "pi", in("bad/plain") + ":" + in("bad/dir"), in("bad/plain/pi") + " is not executable"},
		{"an empty file on the PATH", "pi", in("bad/empty"), in("bad/empty/pi") + " is an empty file"},
		{"a folder on the PATH", "pi", in("bad/dir"), in("bad/dir/pi") + " is a directory"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := lanes.ParseCommand(test.words, []string{"PATH=" + test.path})
			var failure *lanes.CommandError
			if !errors.As(err, &failure) {
				t.Fatalf("%+v, %v; want a *CommandError", got, err)
			}
			if failure.Words != test.words || !strings.Contains(failure.Reason, test.says) {
				t.Errorf("%q because %q, want a reason with %q", failure.Words, failure.Reason, test.says)
			}
			if text := err.Error(); !strings.Contains(text, "--pi") || !strings.Contains(text, "PILOTHOUSE_PI") {
				t.Errorf("the text names no way out: %s", text)
			}
		})
	}
}
