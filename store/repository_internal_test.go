package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bench is a place with a git and an environment of its own: no variable of git's is
// set, so that the answer depends on the files alone.
type bench struct {
	*testing.T
	dir         string
	environment []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, dir: filepath.Join(dir, "work"), environment: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home")}}
	b.write("home/.gitconfig", "[user]\n\tname = a\n\temail = a@b\n[protocol \"file\"]\n\tallow = always\n")
	b.mkdir("work")
	return b
}

func (b *bench) path(name string) string { return filepath.Join(filepath.Dir(b.dir), name) }

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) mkdir(name string) string {
	b.Helper()
	b.must(os.MkdirAll(b.path(name), 0o755))
	return b.path(name)
}

func (b *bench) write(name, content string) {
	b.Helper()
	b.mkdir(filepath.Dir(name))
	b.must(os.WriteFile(b.path(name), []byte(content), 0o600))
}

// setConfig adds to the configuration of the repository.
func (b *bench) setConfig(text string) {
	b.Helper()
	old, err := os.ReadFile(b.path("work/.git/config"))
	b.must(err)
	b.write("work/.git/config", string(old)+text)
}

func (b *bench) tryGit(workdir string, args ...string) (string, error) {
	command := exec.Command("git", args...)
	command.Dir, command.Env = workdir, b.environment
	out, err := command.Output()
	return string(out), err
}

func (b *bench) git(args ...string) {
	b.Helper()
	if out, err := b.tryGit(b.dir, args...); err != nil {
		b.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// repository is a new repository with one commit.
func (b *bench) repository() {
	b.Helper()
	b.git("init", "-q")
	b.git("commit", "-q", "--allow-empty", "-m", "x")
}

// asked is what git says, with its paths made absolute.
func (b *bench) asked(workdir string) (places, error) {
	b.Helper()
	out, err := b.tryGit(workdir, "rev-parse", "--is-bare-repository", "--git-dir", "--show-toplevel")
	if err != nil {
		return places{}, err
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 3 {
		b.Fatalf("git said %q", out)
	}
	gitDir, err := resolve(workdir, lines[1])
	b.must(err)
	return places{bare: lines[0] == "true", gitDir: gitDir, worktree: lines[2]}, nil
}

func TestAnOrdinaryRepositoryIsFoundAsGitFindsItAndAnyOtherIsLeftToGit(t *testing.T) {
	t.Parallel()
	at := func(change func(b *bench)) func(b *bench) string {
		return func(b *bench) string {
			b.Helper()
			b.repository()
			change(b)
			return b.dir
		}
	}
	chown := func(names ...string) func(b *bench) string {
		return at(func(b *bench) {
			if os.Geteuid() != 0 {
				b.Skip("only root may give files away")
			}
			for _, name := range names {
				b.must(os.Lchown(b.path(name), 65534, 65534))
			}
		})
	}
	config := func(text string) func(b *bench) string {
		return at(func(b *bench) { b.setConfig(text) })
	}
	head := func(text string) func(b *bench) string {
		return at(func(b *bench) { b.write("work/.git/HEAD", text) })
	}
	moved := func(link func(b *bench, gitDir string)) func(b *bench) string {
		return at(func(b *bench) {
			b.must(os.Rename(b.path("work/.git"), b.path("elsewhere")))
			link(b, b.path("elsewhere"))
		})
	}
	variable := func(entry string) func(b *bench) string {
		return at(func(b *bench) {
			b.mkdir("other")
			b.must(exec.Command("git", "init", "-q", b.path("other")).Run())
			b.environment = append(b.environment, strings.ReplaceAll(entry, "OTHER", b.path("other")))
		})
	}
	for name, tt := range map[string]struct {
		answers bool // whether it is so ordinary that git need not be asked
		setup   func(b *bench) (workdir string)
	}{
		"fresh":    {true, func(b *bench) string { b.git("init", "-q"); return b.dir }},
		"unborn":   {true, at(func(b *bench) { b.git("checkout", "-q", "--orphan", "new") })},
		"commits":  {true, at(func(*bench) {})},
		"detached": {true, at(func(b *bench) { b.git("checkout", "-q", "--detach") })},
		"subdirectory": {true, func(b *bench) string {
			b.repository()
			return b.mkdir("work/sub")
		}},
		"deep subdirectory": {true, func(b *bench) string {
			b.repository()
			return b.mkdir("work/a/b c/d/e/f")
		}},
		"through a link": {true, func(b *bench) string {
			b.repository()
			b.must(os.Symlink(b.mkdir("work/sub"), b.path("link")))
			return b.path("link")
		}},
		"clone": {true, func(b *bench) string {
			b.repository()
			b.git("clone", "-q", b.dir, b.path("clone"))
			return b.path("clone")
		}},
		"an identity and a submodule of its own": {true, config("[user]\n\tname = Ä B\n\temail=a@b\n# remark\n[submodule \"m\"]\n\tactive = true\n")},
		"variables about people":                 {true, variable("GIT_AUTHOR_NAME=a")},
		"a nested repository": {true, func(b *bench) string {
			b.repository()
			b.git("clone", "-q", b.dir, b.path("work/inner"))
			return b.mkdir("work/inner/sub")
		}},

		"linked work tree": {false, at(func(b *bench) {
			b.git("worktree", "add", "-q", b.path("linked"))
			b.dir = b.path("linked")
		})},
		"submodule": {false, at(func(b *bench) {
			b.git("clone", "-q", b.dir, b.path("source"))
			b.git("submodule", "--quiet", "add", b.path("source"), "mod")
			b.dir = b.path("work/mod")
		})},
		"separate git directory": {false, func(b *bench) string {
			b.git("init", "-q", "--separate-git-dir", b.path("elsewhere"))
			return b.dir
		}},
		"linked .git": {false, moved(func(b *bench, gitDir string) { b.must(os.Symlink(gitDir, b.path("work/.git"))) })},
		".git with a commondir": {false, moved(func(b *bench, gitDir string) {
			b.write("work/.git/HEAD", "ref: refs/heads/x\n")
			b.write("work/.git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
			b.write("work/.git/commondir", gitDir+"\n")
			b.mkdir("work/.git/objects")
			b.mkdir("work/.git/refs")
		})},
		"bare": {false, func(b *bench) string { b.git("init", "-q", "--bare"); return b.dir }},
		"in .git": {false, func(b *bench) string {
			b.repository()
			return b.path("work/.git")
		}},
		"below .git": {false, func(b *bench) string {
			b.repository()
			return b.path("work/.git/refs/heads")
		}},
		"sha256": {false, func(b *bench) string { b.git("init", "-q", "--object-format=sha256"); return b.dir }},
		"partial clone": {false, at(func(b *bench) {
			b.git("config", "uploadpack.allowFilter", "true")
			b.git("clone", "-q", "--no-checkout", "--filter=blob:none", "file://"+b.dir, b.path("clone"))
			b.dir = b.path("clone")
		})},
		"core.worktree": {false, at(func(b *bench) { b.git("config", "core.worktree", b.mkdir("tree")) })},
		"a work tree on the line of its section": {false, at(func(b *bench) {
			b.setConfig("[core] worktree = " + b.mkdir("tree") + "\n")
		})},
		"include.path": {false, at(func(b *bench) {
			b.write("included", "[core]\n\tworktree = "+b.mkdir("tree")+"\n")
			b.setConfig("[include]\n\tpath = " + b.path("included") + "\n")
		})},
		"bare = true":                            {false, at(func(b *bench) { b.git("config", "core.bare", "true") })},
		"bare = true later":                      {false, config("[core]\n\tbare = true\n")},
		"bare = true on the line of its section": {false, config("[core] bare = true\n")},
		"bare without a value":                   {false, config("[core]\n\tbare\n")},
		"bare in another section only": {false, at(func(b *bench) {
			b.write("work/.git/config", "[core]\n\trepositoryformatversion = 0\n[core] bare = true\n[branch \"x\"]\n\tbare = false\n")
		})},
		"format of the future":      {false, at(func(b *bench) { b.git("config", "core.repositoryformatversion", "7") })},
		"an unknown extension":      {false, config("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tunheard = true\n")},
		"a value that is no number": {false, config("[core]\n\tabbrev = some\n")},
		"a value that is no truth":  {false, config("[core]\n\tfilemode = some\n")},
		"a name without a value":    {false, config("[user]\n\tname\n")},
		"an open quote":             {false, config("[user]\n\tname = \"a\n")},
		"an open section":           {false, config("[user\n")},
		"a name with a sign":        {false, config("[branch \"x\"]\n\tna_me = a\n")},
		"a name before any section": {false, at(func(b *bench) {
			b.write("work/.git/config", "a = b\n[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
		})},
		"a section that only looks known":   {false, config("[remote \"a\"b\"]\n\turl = x\n")},
		"a line that goes on":               {false, config("[user]\n\tname = a \\\n\temail = b\n")},
		"a word for what moves a work tree": {false, config("[branch \"worktree\"]\n\tremote = a\n")},
		"a word for another file":           {false, config("[branch \"include\"]\n\tremote = a\n")},
		"a word for another format":         {false, config("[branch \"extensions\"]\n\tremote = a\n")},
		"a carriage return":                 {false, config("[user]\n\tname = a\rb\n")},
		"bare = false twice":                {false, config("[core]\n\tbare = false\n")},
		"no format":                         {false, at(func(b *bench) { b.write("work/.git/config", "[core]\n\tbare = false\n") })},
		".git with a gitdir":                {false, at(func(b *bench) { b.write("work/.git/gitdir", b.path("work/.git")+"\n") })},
		"objects that are a link": {false, at(func(b *bench) {
			b.must(os.Rename(b.path("work/.git/objects"), b.path("objects")))
			b.must(os.Symlink(b.path("objects"), b.path("work/.git/objects")))
		})},
		"an endless config": {false, config(strings.Repeat("# remark\n", 8<<10))},
		"a config that is a link": {false, at(func(b *bench) {
			b.must(os.Rename(b.path("work/.git/config"), b.path("config")))
			b.must(os.Symlink(b.path("config"), b.path("work/.git/config")))
		})},
		"no config":                {false, at(func(b *bench) { b.must(os.Remove(b.path("work/.git/config"))) })},
		"of another user":          {false, chown("work", "work/.git", "work/.git/config")},
		"top of another user":      {false, chown("work")},
		".git of another user":     {false, chown("work/.git")},
		"config of another user":   {false, chown("work/.git/config")},
		"of the user behind sudo":  {false, variable("SUDO_UID=65534")},
		"GIT_DIR":                  {false, variable("GIT_DIR=OTHER/.git")},
		"GIT_WORK_TREE":            {false, variable("GIT_WORK_TREE=OTHER")},
		"GIT_CEILING_DIRECTORIES":  {false, variable("GIT_CEILING_DIRECTORIES=/")},
		"distrusted by a variable": {false, variable("GIT_TEST_ASSUME_DIFFERENT_OWNER=1")},
		"nested without HEAD": {false, at(func(b *bench) {
			b.git("clone", "-q", b.dir, b.path("work/inner"))
			b.must(os.Remove(b.path("work/inner/.git/HEAD")))
			b.dir = b.path("work/inner")
		})},
		"nested and empty": {false, at(func(b *bench) {
			b.mkdir("work/inner/.git")
			b.dir = b.path("work/inner")
		})},
		"a git directory in between": {false, at(func(b *bench) {
			b.git("init", "-q", "--bare", b.path("work/inner"))
			b.dir = b.mkdir("work/inner/sub")
		})},
		"what looks like a git directory in between": {false, at(func(b *bench) {
			b.write("work/inner/HEAD", "no head")
			b.mkdir("work/inner/objects")
			b.mkdir("work/inner/refs")
			b.dir = b.mkdir("work/inner/sub")
		})},
		"corrupted HEAD":            {false, head("what is this\n")},
		"empty HEAD":                {false, head("")},
		"HEAD of another folder":    {false, head("ref: heads/x\n")},
		"half a commit as the HEAD": {false, head(strings.Repeat("a", 39) + "\n")},
		"HEAD that is a pipe": {false, at(func(b *bench) {
			b.must(os.Remove(b.path("work/.git/HEAD")))
			b.must(syscall.Mkfifo(b.path("work/.git/HEAD"), 0o600))
			b.environment = append(b.environment, "GIT_DIR="+b.path("nowhere")) // git itself would wait
		})},
		"no objects":        {false, at(func(b *bench) { b.must(os.RemoveAll(b.path("work/.git/objects"))) })},
		"no refs":           {false, at(func(b *bench) { b.must(os.RemoveAll(b.path("work/.git/refs"))) })},
		"missing directory": {false, func(b *bench) string { return b.path("missing") }},
		"a file": {false, at(func(b *bench) {
			b.write("work/file", "")
			b.dir = b.path("work/file")
		})},
		"no repository": {false, func(b *bench) string { return b.dir }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			workdir := tt.setup(b)
			found, ok := ordinary(workdir, b.environment)
			if ok != tt.answers {
				t.Errorf("answers: %v", ok)
			}
			if !ok {
				if found != (places{}) {
					t.Errorf("declined with %+v", found)
				}
				return
			}
			want, err := b.asked(workdir)
			if err != nil {
				t.Fatalf("git refuses it, but found %+v", found)
			}
			if diff := cmp.Diff(want, found, cmp.AllowUnexported(places{})); diff != "" {
				t.Errorf("(-git +found):\n%s", diff)
			}
		})
	}
}

// withoutGitVariables makes the environment one that git's answer does not depend on.
func withoutGitVariables(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); concernsRepository(entry) {
			t.Setenv(name, "") // restores it
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestFindStartsNoGitInAnOrdinaryRepository(t *testing.T) {
	b := newBench(t)
	b.repository()
	withoutGitVariables(t)
	asked, err := Find(t.Context(), b.dir)
	b.must(err)
	b.write("bin/git", "#!/bin/sh\necho started >&2\nexit 1\n")
	b.must(os.Chmod(b.path("bin/git"), 0o755))
	t.Setenv("PATH", b.path("bin"))
	found, err := Find(t.Context(), b.dir)
	b.must(err)
	want := Root{Dir: b.path("work/.git/pi_plans"), CommonDir: b.path("work/.git"), Workdir: b.dir, Worktree: b.dir}
	if found != want || asked != want {
		t.Errorf("found %+v and %+v", asked, found)
	}
	if err := os.Remove(b.path("work/.git/HEAD")); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(t.Context(), b.dir); err == nil || !strings.Contains(err.Error(), "started") {
		t.Errorf("without a HEAD: %v", err)
	}
}

func TestAMissingGitIsToldInAnOrdinaryRepositoryToo(t *testing.T) {
	b := newBench(t)
	b.repository()
	withoutGitVariables(t)
	t.Setenv("PATH", b.mkdir("empty"))
	if _, err := Find(t.Context(), b.dir); !errors.Is(err, ErrGitMissing) {
		t.Errorf("got %v", err)
	}
}
