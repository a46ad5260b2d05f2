package store

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ordinary finds the repository of workdir without starting git, which would be a
// large part of the time of a short command. It answers only where nothing is in
// play that could lead git elsewhere or make it refuse: a plain .git directory of
// ours at workdir or above, on one device, with a configuration of the everyday kind
// and no variables for git. What it answers is then what git would, with absolute
// paths free of links. In any doubt and at any error it declines, and git is asked.
//
// One thing it cannot know: git also refuses to work while a configuration of the
// user or of the machine has a mistake. Then the next command of git tells.
func ordinary(workdir string, environment []string) (places, bool) {
	if slices.ContainsFunc(environment, concernsRepository) {
		return places{}, false
	}
	if _, err := exec.LookPath("git"); err != nil { // git itself is to tell that it is missing
		return places{}, false
	}
	dir, err := filepath.EvalSymlinks(workdir)
	if err != nil || !filepath.IsAbs(dir) || !spelledAsListed(dir) {
		return places{}, false
	}
	start, ok := lstat(dir)
	if !ok {
		return places{}, false
	}
	for level := start; ; {
		if level.Dev != start.Dev || looksLikeGitDir(dir) {
			return places{}, false
		}
		gitDir := filepath.Join(dir, ".git")
		_, err := os.Lstat(gitDir)
		if err == nil && level.ours() && ordinaryGitDir(gitDir) {
			return places{gitDir: gitDir, worktree: dir}, true
		}
		parent := filepath.Dir(dir)
		if !os.IsNotExist(err) || parent == dir {
			return places{}, false
		}
		dir = parent
		if level, ok = lstat(dir); !ok {
			return places{}, false
		}
	}
}

// concernsRepository tells whether a variable may change which repository git finds
// or whether it trusts it: any of git's own but those about people and terminals, and
// the one by which git trusts the user behind sudo.
func concernsRepository(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	switch name {
	case "GIT_PAGER", "GIT_EDITOR", "GIT_ASKPASS", "GIT_TERMINAL_PROMPT":
		return false
	case "SUDO_UID":
		return true
	}
	return strings.HasPrefix(name, "GIT_") &&
		!strings.HasPrefix(name, "GIT_AUTHOR_") && !strings.HasPrefix(name, "GIT_COMMITTER_")
}

// ordinaryGitDir tells whether git takes dir for a git directory, trusts it, and has
// its work tree right above it.
func ordinaryGitDir(dir string) bool {
	if info, ok := lstat(dir); !ok || !info.IsDir() || !info.ours() {
		return false
	}
	for _, name := range []string{"objects", "refs"} {
		path := filepath.Join(dir, name)
		if info, ok := lstat(path); !ok || !info.IsDir() || unix.Access(path, unix.X_OK) != nil {
			return false
		}
	}
	for _, name := range []string{"commondir", "gitdir"} { // those of a linked work tree
		if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			return false
		}
	}
	head, ok := readRegular(filepath.Join(dir, "HEAD"))
	if !ok || !ordinaryHead(head) {
		return false
	}
	path := filepath.Join(dir, "config")
	if info, ok := lstat(path); !ok || !info.ours() {
		return false
	}
	config, ok := readRegular(path)
	return ok && ordinaryConfig(config)
}

// ordinaryHead tells whether HEAD names a branch or a commit.
func ordinaryHead(text string) bool {
	line := strings.TrimSuffix(text, "\n")
	if name, ok := strings.CutPrefix(line, "ref: refs/"); ok {
		const longest = 200 // git looks at 255 bytes of HEAD
		return name != "" && len(name) <= longest && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' })
	}
	return len(line) == 40 && strings.Trim(line, "0123456789abcdef") == ""
}

// ordinaryConfig tells whether git accepts a configuration and finds in it a
// repository of the first format, not bare, with nothing that moves its work tree.
// It understands less than git does, and only settings that git cannot stumble over:
// one wrong value among those that git reads at its start, and it refuses to work.
func ordinaryConfig(text string) bool {
	text = strings.ToLower(text)
	for _, word := range []string{"include", "worktree", "extensions", `\`} { // \ continues a line
		if strings.Contains(text, word) {
			return false
		}
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
		return false
	}
	section, seen := "", map[string]int{}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Trim(line, " \t")
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			section = ordinarySection(line)
			if section == "" {
				return false
			}
		default:
			name, value, found := strings.Cut(line, "=")
			name, value = strings.TrimRight(name, " \t"), strings.TrimLeft(value, " \t")
			if !found || !ordinarySetting(section, name, value) {
				return false
			}
			seen[section+"."+name]++
		}
	}
	return seen["core.bare"] == 1 && seen["core.repositoryformatversion"] == 1
}

// ordinarySection returns the name of the section that a line begins, "" for one that
// is not among those known.
func ordinarySection(line string) string {
	switch line {
	case "[core]", "[user]":
		return line[1 : len(line)-1]
	}
	name, rest, _ := strings.Cut(line[1:], ` "`)
	subsection, whole := strings.CutSuffix(rest, `"]`)
	if !whole || subsection == "" || strings.Contains(subsection, `"`) {
		return ""
	}
	switch name {
	case "remote", "branch", "submodule":
		return name
	}
	return ""
}

func ordinarySetting(section, name, value string) bool {
	if name == "" || name[0] < 'a' || name[0] > 'z' || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return false
	}
	if strings.Contains(value, `"`) { // a quote may be left open
		return false
	}
	switch section {
	case "core":
		switch name {
		case "repositoryformatversion":
			return value == "0"
		case "bare":
			return value == "false"
		case "filemode", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks":
			return value == "true" || value == "false"
		}
		return false
	case "user":
		return name == "name" || name == "email" || name == "signingkey"
	}
	return section != "" // of a remote, a branch or a submodule git reads nothing at its start
}

// readRegular reads a regular file of at most 64 KiB. It never waits, as it would
// for a pipe.
func readRegular(path string) (string, bool) {
	const most = 64 << 10
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return "", false
	}
	data, err := os.ReadFile(path)
	return string(data), err == nil
}

// status is what the system tells of a file.
type status struct {
	os.FileInfo
	*syscall.Stat_t
}

func lstat(path string) (status, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return status{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return status{info, stat}, ok
}

// ours tells what git asks before it trusts a repository.
func (s status) ours() bool { return int(s.Uid) == os.Geteuid() }
