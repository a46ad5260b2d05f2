package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compactIn runs the subcommand in a directory, with the request on its stdin.
func compactIn(t *testing.T, dir, request string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, message bytes.Buffer
	status = run(append([]string{"compact", "--workdir", dir}, args...), streams{in: strings.NewReader(request), out: &out, err: &message})
	return status, out.String(), message.String()
}

const smallSession = `"preparation":{"tokensBefore":9000,"fileOps":{"read":[],"written":{},"edited":["a.go"]}},"branchEntries":[
	{"id":"u-1","type":"message","message":{"role":"user","content":"Fix the parser"}},
	{"id":"a-1","type":"message","message":{"role":"assistant","content":[{"type":"text","text":"done"}]}},
	{"id":"u-2","type":"message","message":{"role":"user","content":"and the lexer"}},
	{"id":"a-2","type":"message","message":{"role":"assistant","content":[{"type":"text","text":"done"}]}}]`

func TestCompactPrintsItsDecision(t *testing.T) {
	t.Parallel()
	type object struct {
		Action, Reason, FollowUp string
		Compaction               *struct {
			FirstKeptEntryID string
			TokensBefore     int
			Details          struct{ Compactor, Phase string }
		}
	}
	for _, test := range []struct{ request, action, reason, kept, phase, followUp string }{
		{`{` + smallSession + `,"customInstructions":"go on","reason":"manual","phase":{"kind":"planning","runId":"r"}}`, "compaction", "", "u-2", "planning", "go on"},
		{`{` + smallSession + `,"phase":null}`, "compaction", "", "u-2", "", ""},
		{`{` + smallSession + `,"settings":{"overrideDefaultCompaction":false}}`, "fallback", "override-disabled", "", "", ""},
		{`{"branchEntries":[]}`, "cancel", "nothing to compact", "", "", ""},
	} {
		status, out, message := compactIn(t, t.TempDir(), test.request)
		var got object
		if err := json.Unmarshal([]byte(out), &got); err != nil || status != exitDone || message != "" {
			t.Errorf("status %d, %v, stdout %q, stderr %q", status, err, out, message)
			continue
		}
		kept, phase := "", ""
		if got.Compaction != nil {
			kept, phase = got.Compaction.FirstKeptEntryID, got.Compaction.Details.Phase
		}
		if got.Action != test.action || got.Reason != test.reason || kept != test.kept || phase != test.phase || got.FollowUp != test.followUp {
			t.Errorf("%s: %+v", test.request, got)
		}
	}
}

func TestCompactPrintsTheSameBytesAgain(t *testing.T) {
	t.Parallel()
	_, first, _ := compactIn(t, t.TempDir(), `{`+smallSession+`}`)
	_, second, _ := compactIn(t, t.TempDir(), `{`+smallSession+`}`)
	if diff := cmp.Diff(first, second); diff != "" || first == "" {
		t.Errorf("%s", diff)
	}
}

func TestCompactRefusesWhatIsNoRequestInOneSentence(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		request string
		args    []string
		want    string
	}{
		{"", nil, "standard input holds no usable request: no compaction request: unexpected end of JSON input"},
		{"[1]", nil, "it is no JSON object"},
		{`{"branchEntries":7}`, nil, "branchEntries is no array"},
		{`{"branchEntries":[],"phase":{"kind":"x"}}`, nil, "give null outside of both"},
		{"", []string{"request.json"}, "compact reads its request from standard input"},
	} {
		status, out, message := compactIn(t, t.TempDir(), test.request, test.args...)
		if status != exitUsage || out != "" || !strings.Contains(message, test.want) || strings.Count(message, "\n") != 1 {
			t.Errorf("%q %v: status %d, stdout %q, stderr %q", test.request, test.args, status, out, message)
		}
	}
}

// repository is a git repository with this pi-vcc-config.json.
func repository(t *testing.T, config string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	state := filepath.Join(dir, ".git", "pi_plans")
	if err := os.Mkdir(state, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "pi-vcc-config.json"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCompactGoesByTheSettingsOfTheWorkspaceWhereTheRequestHasNone(t *testing.T) {
	t.Parallel()
	off := repository(t, `{"overrideDefaultCompaction":false}`)
	for _, test := range []struct{ dir, request, action, notice string }{
		{off, `{` + smallSession + `}`, "fallback", ""},
		{off, `{` + smallSession + `,"settings":{}}`, "compaction", ""},
		{repository(t, `{ invalid`), `{` + smallSession + `}`, "compaction", "pi-vcc-config.json"},
		{repository(t, `{"overrideDefaultCompaction":"no"}`), `{` + smallSession + `}`, "compaction", ""},
	} {
		status, out, message := compactIn(t, test.dir, test.request)
		if status != exitDone || !strings.Contains(out, `"action": "`+test.action+`"`) || !strings.Contains(message, test.notice) || test.notice == "" && message != "" {
			t.Errorf("%s: status %d, stdout %.60q, stderr %q", test.request, status, out, message)
		}
	}
}

func TestCompactDescribesItselfForItsUserAloneWhenAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "snapshot.json")
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil { // somebody was there first
		t.Fatal(err)
	}
	compactIn(t, dir, `{`+smallSession+`,"settings":{"debug":false}}`, "--snapshot", path)
	if target, err := os.Readlink(path); err != nil || target != victim {
		t.Fatalf("without debug the file was touched: %q, %v", target, err)
	}
	status, _, message := compactIn(t, dir, `{`+smallSession+`,"settings":{"debug":true},"reason":"threshold","phase":{"kind":"planning"}}`, "--snapshot", path)
	if status != exitDone || message != "" {
		t.Errorf("status %d, stderr %q", status, message)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		UsedOwnCut            bool
		Action, Phase, Reason string
	}
	if err := json.Unmarshal(data, &got); err != nil || !got.UsedOwnCut || got.Action != "compaction" || got.Phase != "planning" || got.Reason != "threshold" {
		t.Errorf("%+v, %v", got, err)
	}
	if data, err := os.ReadFile(victim); err != nil || string(data) != "precious" {
		t.Errorf("the file behind the link holds %q, %v", data, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".pilothouse-*")); err != nil || left != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}

	status, out, message := compactIn(t, dir, `{`+smallSession+`,"settings":{"debug":true}}`, "--snapshot", filepath.Join(dir, "nowhere", "x.json"))
	if status != exitDone || out == "" || !strings.Contains(message, "write compaction snapshot") {
		t.Errorf("a snapshot that cannot be written: status %d, stderr %q", status, message)
	}
}
