package compaction_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pilothouse/integration/scriptedmodel"
)

// answers script a session of some turns with tools, several at once among them.
func answers() []scriptedmodel.Rule {
	tool := func(name string, args object) scriptedmodel.ToolCall {
		return scriptedmodel.ToolCall{Name: name, Args: args}
	}
	return []scriptedmodel.Rule{
		{Match: "^Find out", Steps: []scriptedmodel.Step{
			{Text: "I look at the code first.", Tools: []scriptedmodel.ToolCall{
				tool("read", object{"path": "oven/oven.go"}), tool("read", object{"path": "missing.go"}), tool("ls", object{"path": "."}),
			}, LogMessages: true},
			{Text: "The oven has no thermostat. The read of missing.go failed.", LogMessages: true},
		}},
		{Match: "^Add a", Steps: []scriptedmodel.Step{
			{Tools: []scriptedmodel.ToolCall{tool("write", object{"path": "oven/thermostat.go", "content": "package oven\n"})}, LogMessages: true},
			{Tools: []scriptedmodel.ToolCall{tool("bash", object{"command": `git add -A && git -c user.name=a -c user.email=a@b commit -qm "Add a thermostat" && git rev-parse --short HEAD`})}, LogMessages: true},
			{Text: "Added and committed.", LogMessages: true},
		}},
		{Match: ".", Steps: []scriptedmodel.Step{{Text: strings.Repeat("All is well with the oven. ", 60), LogMessages: true}}},
	}
}

// small has Pi compact even what is short.
var small = object{"enabled": false, "keepRecentTokens": 50, "reserveTokens": 16384}

func TestASessionThatWasCompactedByHandGoesOn(t *testing.T) {
	t.Parallel()
	phase := object{"kind": "planning", "runId": "20261130T100000Z-thermostat", "artifactDir": "docs/pi-plans/thermostat", "planPath": ""}
	w := newWorkspace(t, small, phase, answers()...)
	pi := w.live("--model", "sim/plain")
	pi.prompt("Find out what the oven lacks.\nAlways keep the tests green.")
	pi.prompt("Add a thermostat to the oven")
	pi.prompt("What is left to do?")

	done := pi.compact("keep:1")
	if summary := fmt.Sprint(done["summary"]); !strings.Contains(summary, "[Session Goal]\n- Continue planning run 20261130T100000Z-thermostat\n- Find out what the oven lacks.") {
		t.Errorf("summary:\n%s", summary)
	}
	asked := len(w.model.Requests())
	pi.prompt("Find out whether it works")
	if got := len(w.model.Requests()); got != asked+2 {
		t.Errorf("%d requests after the compaction, want 2", got-asked)
	}
	conversation := w.conversation()
	for _, want := range []string{"[Commits]", "Add a thermostat", "[user]", "What is left to do?"} {
		if !strings.Contains(conversation, want) {
			t.Errorf("the model does not see %q", want)
		}
	}
	if strings.Contains(conversation, `"path\":\"oven/thermostat.go\"`) {
		t.Error("the model sees a call that was summarised")
	}

	// A second one merges the first, and cuts inside a turn of several calls at once.
	pi.prompt("And now?")
	second := pi.compact("keep:2")
	if summary := fmt.Sprint(second["summary"]); strings.Count(summary, "[Session Goal]") != 1 || !strings.Contains(summary, "- Find out what the oven lacks.") || !strings.Contains(summary, "Add a thermostat") {
		t.Errorf("the second summary:\n%s", summary)
	}
	pi.prompt("Find out once more")
	w.conversation()

	entries := w.compactions()
	if len(entries) != 2 {
		t.Fatalf("%d compactions in the session", len(entries))
	}
	for i, entry := range entries {
		details, _ := entry["details"].(object)
		if entry["fromHook"] != true || details["compactor"] != "pi-vcc" || details["phase"] != "planning" || entry["firstKeptEntryId"] == "" {
			t.Errorf("compaction %d: %v", i, entry)
		}
	}
	keep(t, "rpc", w.requests())
}

func TestASessionThatCrossesItsThresholdGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, object{"enabled": true, "keepRecentTokens": 300, "reserveTokens": 18_200}, nil, answers()...)
	prompts := []string{"Find out what the oven lacks", "Add a thermostat to the oven", "Is it warm?", "Is it hot?", "Find out the temperature", "Is it cold?"}
	ended := 0
	for _, prompt := range prompts {
		cmd := w.pi("--mode", "json", "-p", "--model", "sim/small", prompt)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", prompt, err, stderr.String())
		}
		for line := range bytes.Lines(stdout.Bytes()) {
			var event struct {
				Type, ErrorMessage string
				Aborted            bool
				Message            struct{ StopReason, ErrorMessage string }
				Result             *struct{ Summary string }
			}
			if err := json.Unmarshal(line, &event); err != nil {
				t.Fatal(err)
			}
			if event.Message.StopReason == "error" {
				t.Errorf("%s: %s", prompt, event.Message.ErrorMessage)
			}
			if event.Type == "compaction_end" && event.Result != nil {
				ended++
			}
		}
	}
	w.conversation()
	if entries := w.compactions(); len(entries) < 2 || len(entries) != ended {
		t.Errorf("%d compactions in the session, %d told", len(entries), ended)
	}
	// Pi's own summaries would be requests to the model.
	if got, want := len(w.model.Requests()), 2+3+1+1+2+1; got != want {
		t.Errorf("%d requests, want %d", got, want)
	}
	keep(t, "json", w.requests())
}
