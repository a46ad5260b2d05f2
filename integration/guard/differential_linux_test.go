package guard_test

import (
	"bufio"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pilothouse/supervisor/guard"
)

var (
	duration = flag.Duration("for", 2*time.Second, "how long to make and run commands")
	seed     = flag.Uint64("seed", 1, "the draw of commands")
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(sandboxVariable); dir != "" {
		os.Exit(sandboxMain(dir))
	}
	os.Exit(m.Run())
}

// tableRows are the commands of one of the guard's own tables of verdicts.
func tableRows(t *testing.T, name string) (allowed, blocked []string) {
	t.Helper()
	file, err := os.Open(filepath.Join("../../supervisor/guard/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decode := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\x00`, "\x00")
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		columns := strings.SplitN(lines.Text(), "\t", 3)
		if len(columns) != 3 {
			continue
		}
		command := decode.Replace(columns[2])
		if text, err := strconv.Unquote(`"` + strings.ReplaceAll(command, `"`, `\"`) + `"`); err == nil && strings.Contains(command, `\u`) {
			command = text
		}
		if columns[1] == "allow" {
			allowed = append(allowed, command)
		} else {
			blocked = append(blocked, command)
		}
	}
	if len(allowed) == 0 || len(blocked) == 0 {
		t.Fatal("the table is empty")
	}
	return allowed, blocked
}

func TestTheSandboxSeesEveryKindOfChange(t *testing.T) {
	w := newWorld(t)
	s := newSandbox(t, w)
	for _, command := range []string{
		"echo x > pwned", "rm f", "touch f", "chmod 600 f", "mkdir d", "mv f g", "ln -s f l", "sed -i s/a/b/ f", "git log --output=pwned",
		"git commit -qam x", "./x", "touch ~/pwned", "touch /etc/pwned", "touch /var/tmp/pwned", "touch $TMPDIR/pwned", "echo x > /dev/pwned",
		"setfattr -n user.x -v y f || touch f", "(sleep 0.1; touch pwned) & wait", "git -c alias.q='!touch pwned' q",
	} {
		if o := s.run(t, order{"bash", command}); len(o.Changed) == 0 {
			t.Errorf("%q: no change was seen (%+v)", command, o)
		}
	}
	for _, command := range []string{"true", "false", "cat f", "ls -la", "git status", "touch", "sleep 5"} {
		if o := s.run(t, order{"bash", command}); len(o.Changed) != 0 || o.Err != "" {
			t.Errorf("%q: got %+v, want no change", command, o)
		}
	}
}

func TestDifferentialNothingThatIsAllowedChangesAnything(t *testing.T) {
	w := newWorld(t)
	s := newSandbox(t, w)
	policy := guard.Policy{Workspace: w.repo(), Dir: w.repo()}
	allowed, blocked := tableRows(t, "shell.tsv")
	good, bad := tableRows(t, "traps.tsv")
	var generated, passed, executed, late, harmed int
	seen := map[string]bool{}
	judge := func(command string) {
		generated++
		verdict := policy.Shell(command)
		if again := policy.Shell(command); again.Reason != verdict.Reason || again.Decision != verdict.Decision {
			t.Errorf("%q: two verdicts, %q and %q", command, verdict.Reason, again.Reason)
		}
		if !verdict.Allowed() {
			return
		}
		passed++
		if seen[command] || strings.Contains(command, "\x00") {
			return
		}
		seen[command] = true
		executed++
		for _, shell := range []string{"bash", "sh"} {
			o := s.run(t, order{shell, command})
			switch {
			case o.Err != "":
				t.Fatalf("%q: the sandbox failed: %s", command, o.Err)
			case len(o.Changed) > 0:
				harmed++
				t.Errorf("%q is allowed, but with %s changes %q", command, shell, o.Changed)
			case o.TimedOut:
				late++
			}
		}
	}
	for _, command := range slices.Concat(allowed, boundaries) {
		judge(command)
	}
	g := newGenerator(*seed, slices.Concat(allowed, blocked, good, bad, boundaries), findTools(t, w))
	for end := time.Now().Add(*duration); time.Now().Before(end); {
		judge(g.command())
	}
	t.Logf("seed %d: %d commands generated, %d allowed, %d different ones executed by bash and by sh (%d times ended after %v), %d changed something",
		*seed, generated, passed, executed, late, commandTime, harmed)
	if executed < 100 {
		t.Errorf("only %d commands were executed", executed)
	}
}
