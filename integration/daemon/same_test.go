package daemon_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// changing is what differs between two runs of the same commands.
var changing = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\d{8}T\d{6}Z`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`((?:plan-)?(?:reviewer|criticizer|refs)-r)[0-9a-z]+`), "${1}ID"},
	{regexp.MustCompile(`"(durationMs|startedAt|endedAt)": [^,\n]+`), `"$1": N`},
	{regexp.MustCompile(`process \d+`), "process N"},
}

// neutral takes out of a text what differs between two runs of the same commands.
func (s *scene) neutral(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, s.Dir, "WORKSPACE"), s.Home, "HOME")
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.instead)
	}
	return text
}

// Every command says and does the same with a daemon as without one.
func TestCommandsAreTheSameWithAndWithoutADaemon(t *testing.T) {
	t.Parallel()
	with, without := newScene(t), newScene(t)
	daemon := with.serve()
	for _, s := range []*scene{with, without} {
		s.Write(filepath.Join(s.Dir, "bad.md"), "# STUB-401\n\n## Items\n- I-001 Fail.\n")
	}
	commands := [][]string{
		{"runs"},
		{"plans", "show"},
		{"show"},
		{"refine", "plan.md", "--progress", "none"},
		{"plans", "init"},
		{"runs"},
		{"runs", "--json"},
		{"plans", "set-role", "--role", "nobody"},
		{"plans", "--json", `{"action":"set-language","tag":"<en> & more","languageSource":"user"}`},
		{"plans", "frobnicate"},
		{"refine", "plan.md", "--progress", "none"},
		{"refine", "plan.md", "--progress", "none", "--json"},
		{"refine", "missing.md", "--model", "inherit"},
		{"refine", "plan.md", "--model", "inherit", "--pi", "no-such-pi"},
		refineArgs(),
		refineArgs("--json"),
		{"refine", "bad.md", "--model", "inherit", "--progress", "none"},
		{"refine", "bad.md", "--model", "inherit", "--progress", "none", "--json"},
		{"refine", "plan.md", "--model", "inherit", "--run", "nothing"},
		{"refine", "plan.md", "--model", "inherit", "--resume-round", "nothing"},
		{"analyze-refs", "--ref", "one=docs", "--ref", "two=nowhere", "--model", "inherit", "--progress", "none"},
		{"analyze-refs", "--ref", "one=docs", "--ref", "one=docs", "--model", "inherit"},
		{"plans", "--json", `{"action":"start-run","topic":"Cache","skill":"plan-small","requestText":"Add a cache"}`},
		{"plans", "record-checkpoint", "--checkpoint", `{"transition":"completed"}`},
		{"runs"},
		{"runs", "--json"},
		{"show"},
		{"show", "nothing"},
	}
	codes := map[int]int{}
	for _, command := range commands {
		one, other := with.run(command...), without.run(append([]string{"--local"}, command...)...)
		if one.Code != other.Code {
			t.Errorf("%v ended with %d with the daemon, %d without", command, one.Code, other.Code)
		}
		if diff := cmp.Diff(without.neutral(other.Stdout), with.neutral(one.Stdout)); diff != "" {
			t.Errorf("stdout of %v (-without +with):\n%s", command, diff)
		}
		if diff := cmp.Diff(without.neutral(other.Stderr), with.neutral(one.Stderr)); diff != "" {
			t.Errorf("stderr of %v (-without +with):\n%s", command, diff)
		}
		codes[one.Code]++
	}
	for _, code := range []int{0, 1, 2, 3} {
		if codes[code] == 0 {
			t.Errorf("no command ended with %d", code)
		}
	}
	if accepted := strings.Count(daemon.Stderr.String(), "call accepted"); accepted < 15 {
		t.Errorf("only %d calls went through the daemon", accepted)
	}
}

func TestARunOfAnotherProcessIsRefusedByTheDaemonToo(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	open := s.gated()
	holder := s.Start("--local", "refine", "plan.md", "--model", "inherit", "--progress", "plain")
	holder.Says("responding")
	e := s.Must(4, refineArgs()...)
	contains(t, e.Stderr, fmt.Sprintf("process %d", holder.Cmd.Process.Pid))
	open()
	if e := holder.Wait(); e.Code != 0 {
		t.Errorf("the holder ended with %d: %s", e.Code, e.Stderr)
	}
}
