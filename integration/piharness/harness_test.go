package piharness_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"pilothouse/integration/piharness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

func TestACommandIsQuotedForAShellOnlyWhereItHasTo(t *testing.T) {
	t.Parallel()
	for want, command := range map[string]piharness.Command{
		"/opt/node /opt/pi/cli.js": {"/opt/node", "/opt/pi/cli.js"},
		"'/my tools/node' cli.js":  {"/my tools/node", "cli.js"},
	} {
		if got := command.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestARepositoryHasOneCommitAndNothingUncommitted(t *testing.T) {
	t.Parallel()
	repo := piharness.Repo(t)
	for want, args := range map[string][]string{
		"1\n":    {"rev-list", "--count", "main"},
		"":       {"status", "--porcelain"},
		"main\n": {"branch", "--show-current"},
	} {
		out, err := exec.Command("git", append([]string{"-C", repo}, args...)...).Output()
		if err != nil || string(out) != want {
			t.Errorf("git %v: %q, %v; want %q", args, out, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(repo, "oven", "oven.go")); err != nil {
		t.Error(err)
	}
}

func TestAnEnvironmentIsTheTestsOwn(t *testing.T) {
	t.Setenv("PI_SECRET_OF_THE_DEVELOPER", "x")
	env := map[string]string{}
	for _, pair := range piharness.Env(t, "/agent") {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	if _, leaked := env["PI_SECRET_OF_THE_DEVELOPER"]; leaked {
		t.Error("a variable of the developer's session leaked in")
	}
	got := map[string]string{}
	for _, name := range []string{"PI_OFFLINE", "PI_TELEMETRY", "PI_SKIP_VERSION_CHECK", "PI_CODING_AGENT_DIR"} {
		got[name] = env[name]
	}
	want := map[string]string{"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1", "PI_CODING_AGENT_DIR": "/agent"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Pi's variables (-want +got):\n%s", diff)
	}
	for _, name := range []string{"HOME", "TMPDIR"} {
		entries, err := os.ReadDir(env[name])
		if err != nil || len(entries) != 0 {
			t.Errorf("%s=%s: want an empty folder, have %d entries, %v", name, env[name], len(entries), err)
		}
	}
	// Not LookPath: that would search this process's PATH.
	for _, dir := range filepath.SplitList(env["PATH"]) {
		if _, err := os.Stat(filepath.Join(dir, "rg")); err == nil {
			return
		}
	}
	t.Errorf("no rg on PATH=%s", env["PATH"])
}

func TestTheBinaryThatTheEnvironmentNamesIsUsed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PILOTHOUSE_BIN", self)
	if got := piharness.Binary(t); got != self {
		t.Errorf("got %s, want %s", got, self)
	}
}

func TestTheProgramIsBuiltAndRuns(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(piharness.Binary(t), "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "pilothouse ") {
		t.Errorf("%q, %v", out, err)
	}
	first, err := os.Stat(piharness.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	again, err := os.Stat(piharness.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(first, again) {
		t.Error("a second call built it again")
	}
}

func TestSurvivorsAreFoundByEnvironmentAndByCommandLineWhileTheyLive(t *testing.T) {
	t.Parallel()
	marker := fmt.Sprintf("survivor-marker-%d", os.Getpid())
	start := func(script string, env ...string) (*exec.Cmd, func()) {
		cmd := exec.Command("sh", "-c", script)
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it runs, with its own environment
			t.Fatal(err)
		}
		return cmd, func() {
			_ = in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		}
	}
	byEnv, endEnv := start("echo up; read line; true", "LANE="+marker)
	byArg, endArg := start("echo up; read line; true # " + marker)

	want := []int{byEnv.Process.Pid, byArg.Process.Pid}
	slices.Sort(want)
	if diff := cmp.Diff(want, piharness.Survivors(marker)); diff != "" {
		t.Errorf("while they live (-want +got):\n%s", diff)
	}
	endEnv()
	endArg()
	if got := piharness.Survivors(marker); len(got) != 0 {
		t.Errorf("after their end: %v", got)
	}
}
