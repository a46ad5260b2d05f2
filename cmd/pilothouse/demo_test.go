package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/lanes"
	"pilothouse/supervisor"
)

func TestDemoChildrenGetNothingThatSteersOrIsSecret(t *testing.T) {
	t.Parallel()
	got := demoEnviron([]string{
		"PATH=/bin", "HOME=/home/me", "LANG=C", "KEYBOARD=us", "TOKENS=3",
		"PI_CODING_AGENT_DIR=/home/me/.pi/agent", "PI_OFFLINE=0", "GIT_DIR=/repo/.git",
		"SOME_API_KEY=secret", "SOME_TOKEN=secret", "SOME_SECRET=s", "DB_PASSWORD=s", "X_CREDENTIALS=s",
		"HTTPS_PROXY=http://proxy", "http_proxy=http://proxy",
	})
	want := []string{
		"PI_OFFLINE=1", "PI_TELEMETRY=0", "PI_SKIP_VERSION_CHECK=1",
		"PATH=/bin", "HOME=/home/me", "LANG=C", "KEYBOARD=us", "TOKENS=3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDemoWorksInANewOrEmptyDirectoryOnly(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	full := filepath.Join(base, "full")
	for _, dir := range []string{full, filepath.Join(base, "empty")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(full, "mine")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		dir, want string
		status    int
	}{
		{dir: "empty", want: filepath.Join(base, "empty")},
		{dir: "a/new", want: filepath.Join(base, "a/new")},
		{dir: filepath.Join(base, "absolute"), want: filepath.Join(base, "absolute")},
		{dir: "full", status: exitUsage},
		{dir: "full/mine", status: exitUsage},
	} {
		got, err := demoDirectory(base, test.dir)
		if got != test.want || exitStatus(err) != test.status {
			t.Errorf("%s: got %q, status %d (%v), want %q, status %d", test.dir, got, exitStatus(err), err, test.want, test.status)
		}
		if info, err := os.Stat(test.want); test.status == exitDone && (err != nil || !info.IsDir()) {
			t.Errorf("%s was not made: %v", test.dir, err)
		}
	}
}

func TestDemoWithoutPiSaysSoAndMakesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	var out, message bytes.Buffer
	status := run([]string{"demo", "--dir", dir, "--pi", "/nowhere/pi"}, streams{in: strings.NewReader(""), out: &out, err: &message})
	const want = `pilothouse: cannot start pi with "/nowhere/pi": /nowhere/pi does not exist; install pi or name the program with --pi or PILOTHOUSE_PI` + "\n"
	if diff := cmp.Diff(want, message.String()); diff != "" || status != exitFailed || out.Len() > 0 {
		t.Errorf("status %d, stdout %q, stderr: %s", status, &out, diff)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s was made: %v", dir, err)
	}
}

func TestDemoCountsEveryLaneThatIsNotCompleteAndWellFormedAsAFault(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	got := demoFaults(supervisor.RoundResult{Lanes: []supervisor.LaneResult{
		{LaneID: "good", Status: lanes.Complete, WellFormed: &yes},
		{LaneID: "broken", Status: lanes.Failed},
		{LaneID: "stopped", Status: lanes.Cancelled},
		{LaneID: "odd", Status: lanes.Complete, WellFormed: &no},
		{LaneID: "mute", Status: lanes.Complete},
	}})
	want := []string{"broken failed", "stopped cancelled", "odd answered outside the grammar", "mute answered outside the grammar"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
