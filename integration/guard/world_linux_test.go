package guard_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// world is a throw-away directory with a repository, a home and a place for
// temporary files. It is set with traps: programs, aliases and file names that do
// harm if they are run or taken for options.
type world struct{ dir string }

func (w world) repo() string { return filepath.Join(w.dir, "repo") }

const harm = "#!/bin/sh\ntouch pwned \"$HOME/pwned\" /var/tmp/pwned\n"

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{dir: t.TempDir()}
	files := map[string]string{
		"repo/f": "alpha 1\nbeta 2\ngamma 3\n", "repo/a": "x\ny\n", "repo/b": "y\nz\n", "repo/names.txt": "ann\nbob\nann\n",
		"repo/in": "in\n", "repo/plan.md": "# Plan\n\nwrite TODO\n", "repo/README.md": "# Read me\n", "repo/data.txt": "1,2\n3,4\n",
		"repo/package.json": `{"name":"x","scripts":{"build":"./x"},"version":"1.0.0"}`, "repo/f.yml": "a: 1\n",
		"repo/src/main.go": "package main\n\nfunc main() {}\n", "repo/src/a": "a\n", "repo/docs/x.md": "x\n", "repo/go.mod": "module x\n\ngo 1.21\n",
		"repo/prog.sed": "w pwned\n", "repo/prog.awk": "{print > \"pwned\"}\n", "repo/list": "--checkpoint=1\n--checkpoint-action=exec=./x\n",
		// names that a command could take for options
		"repo/--output=pwned": "", "repo/-o": "", "repo/-delete": "", "repo/--pre=.x": "", "repo/-i": "", "repo/-exec": "",
		"home/.config/go/telemetry/mode": "off\n",
		"home/.gitconfig":                "[user]\nname=P\nemail=p@example.org\n[alias]\nlg = !touch pwned\nst = !./x\n[core]\npager = touch pwned\neditor = touch pwned\n[gpg]\nprogram = ./x\n[help]\nbrowser = ./x\n[safe]\ndirectory = *\n[tar \"x\"]\ncommand = ./x\n",
		"tmp/keep":                       "", "view/.keep": "", "home/.npm/.keep": "",
	}
	for name, text := range files {
		w.write(t, name, text, 0o644)
	}
	for _, name := range []string{"repo/x", "repo/ls", "repo/evil", "repo/git", "repo/y", "repo/.x"} {
		w.write(t, name, harm, 0o755)
	}
	w.archives(t)
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-qm", "one"}, {"tag", "v1"}, {"branch", "feat/x"},
		{"tag", "-am", "two", "v2"}, {"remote", "add", "origin", w.dir + "/nowhere"},
	} {
		w.git(t, "", args...)
	}
	w.write(t, "repo/f", "alpha 1\nbeta 3\n", 0o644)
	w.git(t, "", "stash", "-q")
	w.write(t, "repo/f", "alpha 1\nbeta 2\ndelta 4\n", 0o644)
	// a commit that looks signed, so that formats that ask for it run gpg
	commit := w.git(t, "", "cat-file", "commit", "HEAD")
	head, body, _ := bytes.Cut([]byte(commit), []byte("\n\n"))
	signed := string(head) + "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n" + string(body)
	id := w.git(t, signed, "hash-object", "-t", "commit", "-w", "--stdin")
	w.git(t, "", "update-ref", "refs/heads/signed", string(bytes.TrimSpace([]byte(id))))
	w.git(t, "", "update-index", "-q", "--refresh")
	return w
}

func (w world) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func (w world) git(t *testing.T, input string, args ...string) string {
	t.Helper()
	git := exec.Command("git", args...)
	git.Dir = w.repo()
	git.Env = append(environ(w.dir), "GIT_EDITOR=true")
	git.Stdin = bytes.NewReader([]byte(input))
	out, err := git.Output()
	if err != nil && args[0] != "update-index" { // which tells of the changed file by its status
		t.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

func (w world) archives(t *testing.T) {
	t.Helper()
	var plain, packed, zipped bytes.Buffer
	archive := tar.NewWriter(&plain)
	if err := archive.WriteHeader(&tar.Header{Name: "pwned", Mode: 0o644, Size: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write([]byte("x\n")); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	gz := gzip.NewWriter(&packed)
	if _, err := gz.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(&zipped)
	if _, err := z.Create("pwned"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	w.write(t, "repo/a.tar", plain.String(), 0o644)
	w.write(t, "repo/a.tgz", packed.String(), 0o644)
	w.write(t, "repo/a.gz", packed.String(), 0o644)
	w.write(t, "repo/a.zip", zipped.String(), 0o644)
}
