package piharness_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// childTimeout ends a Pi that hangs; no assertion depends on it.
const childTimeout = 5 * time.Minute

func TestBothGenerationsOfPiPlayAScriptedConversationToItsEnd(t *testing.T) {
	tests := []struct {
		name  string
		pi    func(testing.TB) piharness.Command
		flags []string
		last  string // the type of the stream's last event
	}{
		{"new", piharness.NewPi, []string{"-na"}, "agent_settled"},
		{"old", piharness.OldPi, nil, "agent_end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			model, agentDir := startModel(t)
			repo := piharness.Repo(t)
			pi := tt.pi(t)
			args := append(pi[1:], "--mode", "json", "-p", "--no-session", "-ne", "-ns", "-np", "--no-themes", "-nc", "--offline",
				"--tools", "read,grep,find,ls", "--model", "sim/plain")
			args = append(args, tt.flags...)
			cmd := exec.CommandContext(t.Context(), pi[0], args...)
			cmd.Dir = repo
			cmd.Env = piharness.Env(t, agentDir)
			cmd.Stdin = strings.NewReader("Task: how long does a batch take? " + scriptedmodel.Script(
				scriptedmodel.Step{Tool: "grep", Args: map[string]any{"pattern": "Minutes = "}},
				scriptedmodel.Step{Text: "45 minutes <oven/oven.go>", Chunks: 3},
			))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			defer time.AfterFunc(childTimeout, func() { _ = cmd.Cancel() }).Stop()
			stdout, err := cmd.Output()
			if err != nil {
				t.Fatalf("pi: %v\n%s", err, stderr.String())
			}

			events := decode(t, stdout)
			if got := events[len(events)-1].Type; got != tt.last {
				t.Errorf("last event is %q, want %q", got, tt.last)
			}
			if got := finalText(events); got != "45 minutes <oven/oven.go>" {
				t.Errorf("final text is %q", got)
			}
			requests := model.Requests()
			if len(requests) != 2 {
				t.Fatalf("model got %d requests, want 2", len(requests))
			}
			if diff := cmp.Diff([]string{"find", "grep", "ls", "read"}, sorted(requests[0].Tools)); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			// The pinned rg was found: its hit is in the stream as the tool's result.
			if !bytes.Contains(stdout, []byte("oven.go:5: const Minutes = 45")) {
				t.Errorf("grep found nothing; stream:\n%s", stdout)
			}
		})
	}
}

func TestBothGenerationsOfPiReportAModelThatRefusesTheirKey(t *testing.T) {
	for name, pi := range map[string]func(testing.TB) piharness.Command{"new": piharness.NewPi, "old": piharness.OldPi} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, agentDir := startModel(t)
			words := pi(t)
			cmd := exec.CommandContext(t.Context(), words[0], append(words[1:], "--mode", "json", "-p", "--no-session", "--model", "sim/plain")...)
			cmd.Dir = piharness.Repo(t)
			cmd.Env = piharness.Env(t, agentDir)
			cmd.Stdin = strings.NewReader("Task: hi " + scriptedmodel.Script(scriptedmodel.Step{Status: 401, Message: "no such key"}))
			defer time.AfterFunc(childTimeout, func() { _ = cmd.Cancel() }).Stop()
			stdout, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			last := lastAssistant(decode(t, stdout))
			if last.StopReason != "error" || !strings.Contains(last.ErrorMessage, "no such key") {
				t.Errorf("stop reason %q, message %q", last.StopReason, last.ErrorMessage)
			}
			if got := model.Stats().Requests; got != 1 {
				t.Errorf("model got %d requests, want 1: a refused key is not retried", got)
			}
		})
	}
}

func startModel(t *testing.T) (*scriptedmodel.Server, string) {
	t.Helper()
	model, err := scriptedmodel.Start(scriptedmodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	agentDir := filepath.Join(t.TempDir(), "agent")
	if err := scriptedmodel.AgentDir(agentDir, model.BaseURL()); err != nil {
		t.Fatal(err)
	}
	return model, agentDir
}

type event struct {
	Type    string
	Message *struct {
		Role         string
		StopReason   string
		ErrorMessage string
		Content      json.RawMessage
	}
}

func decode(t *testing.T, stream []byte) []event {
	t.Helper()
	var events []event
	for line := range bytes.Lines(stream) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("event is not JSON: %v\n%s", err, line)
		}
		events = append(events, e)
	}
	if len(events) == 0 {
		t.Fatal("pi printed no event")
	}
	return events
}

type assistant struct{ StopReason, ErrorMessage, Text string }

func lastAssistant(events []event) assistant {
	var last assistant
	for _, e := range events {
		if e.Type != "message_end" || e.Message == nil || e.Message.Role != "assistant" {
			continue
		}
		last = assistant{StopReason: e.Message.StopReason, ErrorMessage: e.Message.ErrorMessage}
		var blocks []struct{ Text string }
		if json.Unmarshal(e.Message.Content, &blocks) == nil {
			for _, b := range blocks {
				last.Text += b.Text
			}
		}
	}
	return last
}

func finalText(events []event) string { return lastAssistant(events).Text }
