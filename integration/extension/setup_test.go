// Package extension_test has the Pi extension as its users meet it: the pinned Pi with
// the extension as `pilothouse install` puts it there, the daemon that it starts, and a
// scripted model for the session and its subagents.
package extension_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience ends what hangs; no assertion depends on it.
const patience = 2 * time.Minute

const planText = "# Bake more bread\n\n## Implementation Items\n- `I-001`: bake forty loaves a day\n\n" +
	"## Verifier Checklist\n- [ ] `VC-001` I-001; pass: forty loaves; evidence: count them\n"

const reviewText = "## Findings\n\nNo findings.\n\n## Checked\n\n- the oven"

// lane matches the brief of a subagent, never what a person types.
const lane = "Authority boundary:"

// reviewers are subagents that find nothing.
func reviewers(steps ...scriptedmodel.Step) scriptedmodel.Rule {
	if len(steps) == 0 {
		steps = []scriptedmodel.Step{{Text: reviewText, Chunks: 4}}
	}
	return scriptedmodel.Rule{Match: lane, Steps: steps}
}

// gatedPi is a program in the place of the pi of a subagent. It reads its task, says that
// it looks, waits for the file $GATE and answers as a reviewer.
const gatedPi = `#!/bin/sh
cat >/dev/null
say() { printf '%s\n' "$1"; }
say '{"type":"session","version":3,"id":"stub"}'
say '{"type":"agent_start"}'
say '{"type":"turn_start"}'
say '{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"I look at the oven."}}'
until [ -e "$GATE" ]; do sleep 0.05; done
say '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"## Findings\n\nNo findings.\n\n## Checked\n\n- the oven"}],"model":"stub","stopReason":"stop","usage":{"input":10,"output":5,"cost":{"total":0.25}}}}'
say '{"type":"agent_end","messages":[],"willRetry":false}'
say '{"type":"agent_settled","aborted":false}'
`

// gated makes the subagents of sessions from now on wait for the returned function.
func (s *scene) gated() (open func()) {
	s.t.Helper()
	program, gate := filepath.Join(s.runtime, "pi"), filepath.Join(s.runtime, "gate")
	if err := os.WriteFile(program, []byte(gatedPi), 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.env = append(s.env, "PILOTHOUSE_PI="+program, "GATE="+gate)
	return func() {
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// responding waits until that many lanes have said something.
func (s *scene) responding(lanes int) {
	s.t.Helper()
	s.eventually("the lanes respond", func() bool {
		return strings.Count(s.ask("/v1/lanes").at("lanes").each("phase"), "responding") == lanes
	})
}

// scene is a workspace with Pi, the extension and a model. All processes that come of
// it have the marker in their environment, the daemon too.
type scene struct {
	t        testing.TB
	dir      string
	agentDir string
	env      []string
	marker   string
	runtime  string // XDG_RUNTIME_DIR
	model    *scriptedmodel.Server
	heard    *lockedBuffer // the model's log
}

var scenes atomic.Int64

// newScene installs the extension for a user whose model answers by the rules.
func newScene(t testing.TB, rules ...scriptedmodel.Rule) *scene {
	t.Helper()
	s := &scene{t: t, heard: &lockedBuffer{}, marker: fmt.Sprintf("pilothouse-extension-%d-%d-", os.Getpid(), scenes.Add(1))}
	var err error
	if s.model, err = scriptedmodel.Start(scriptedmodel.Options{Rules: rules, Log: s.heard}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.model.Close(); err != nil {
			t.Error(err)
		}
	})
	s.agentDir = filepath.Join(t.TempDir(), "agent")
	if err := scriptedmodel.AgentDir(s.agentDir, s.model.BaseURL()); err != nil {
		t.Fatal(err)
	}
	env := piharness.Env(t, s.agentDir)
	s.dir = piharness.Repo(t)
	for _, entry := range env {
		if home, found := strings.CutPrefix(entry, "HOME="); found {
			s.runtime = filepath.Join(home, "run")
		}
	}
	if err := os.Mkdir(s.runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	s.env = append(env, "XDG_RUNTIME_DIR="+s.runtime, "PILOTHOUSE_E2E="+s.marker)
	t.Cleanup(s.noSurvivors)
	t.Cleanup(func() { s.must("serve", "--stop") })
	s.write("PLAN_v1.md", planText)
	s.must("install")
	return s
}

// confirm answers the questions that come before the first round of a role.
func (s *scene) confirm(roles ...string) {
	s.t.Helper()
	s.must("plans", "init")
	for _, role := range roles {
		s.must("plans", "set-role", "--role", role, "--mode", "delegated-subagent", "--confirmed", "true", "--modelSelector", "inherit")
	}
}

// must runs pilothouse to its end and returns what it prints.
func (s *scene) must(args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, piharness.Binary(s.t), args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("pilothouse %v: %v\n%s", args, err, problems.String())
	}
	return out.String()
}

func (s *scene) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *scene) socket() string { return filepath.Join(s.runtime, "pilothouse", "api.sock") }

// ask reads the daemon's answer to a question.
func (s *scene) ask(path string) value {
	s.t.Helper()
	answer, err := s.tryAsk(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

func (s *scene) tryAsk(path string) (value, error) {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.socket())
		},
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://daemon"+path, nil)
	if err != nil {
		return value{}, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return value{}, err
	}
	defer response.Body.Close()
	var answer json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return value{}, err
	}
	return parse(answer), nil
}

// eventually waits until something holds.
func (s *scene) eventually(what string, holds func() bool) {
	s.t.Helper()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-deadline:
			s.t.Fatalf("it never came to this: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// await waits until the model's counts satisfy reached.
func (s *scene) await(reached func(scriptedmodel.Stats) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := s.model.Await(ctx, reached); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) noSurvivors() {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		left := piharness.Survivors(s.marker)
		if len(left) == 0 {
			return
		}
		select {
		case <-deadline:
			s.t.Errorf("processes outlived the test: %v", left)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func contains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
