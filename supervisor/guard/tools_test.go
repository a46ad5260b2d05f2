package guard_test

import (
	"strings"
	"testing"

	"pilothouse/supervisor/guard"
)

func TestToolsAreJudgedByWhatTheyDeclareAndAreCalled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		declares guard.SideEffect
		args     map[string]any
		want     guard.Decision
	}{
		// known readers, and the tools of plan mode
		{name: "read", want: guard.Allow}, {name: "grep", want: guard.Allow}, {name: "find", want: guard.Allow}, {name: "ls", want: guard.Allow},
		{name: "exit_plan_mode", want: guard.Allow}, {name: "ask_choice", want: guard.Allow}, {name: "refine", want: guard.Allow},
		{name: "read", declares: guard.NoEffect, want: guard.Allow},
		// a declared side effect blocks whatever the name
		{name: "read", declares: guard.Workspace, want: guard.Block}, {name: "read", declares: guard.External, want: guard.Block},
		{name: "exit_plan_mode", declares: guard.Workspace, want: guard.Block}, {name: "ls", declares: "maybe", want: guard.Block},
		{name: "bash", declares: guard.Workspace, args: map[string]any{"command": "ls"}, want: guard.Block},
		// mutators under all usual names, whatever they declare
		{name: "patch", want: guard.Block}, {name: "apply_patch", want: guard.Block}, {name: "applyPatch", declares: guard.NoEffect, want: guard.Block},
		{name: "Write", want: guard.Block}, {name: "WRITE", declares: guard.NoEffect, want: guard.Block}, {name: "Edit", want: guard.Block},
		{name: "multi_edit", declares: guard.NoEffect, want: guard.Block}, {name: "MultiEdit", declares: guard.NoEffect, want: guard.Block},
		{name: "notebook_edit", declares: guard.NoEffect, want: guard.Block}, {name: "NotebookEdit", declares: guard.NoEffect, want: guard.Block},
		{name: "str_replace_based_edit_tool", declares: guard.NoEffect, want: guard.Block}, {name: "create_file", declares: guard.NoEffect, want: guard.Block},
		{name: "delete-file", declares: guard.NoEffect, want: guard.Block}, {name: "write_file", declares: guard.NoEffect, want: guard.Block},
		// what starts work that is not seen
		{name: "subagent", declares: guard.NoEffect, want: guard.Block}, {name: "Task", declares: guard.NoEffect, want: guard.Block},
		{name: "spawn_session", want: guard.Block}, {name: "python", declares: guard.NoEffect, want: guard.Block}, {name: "powershell", declares: guard.NoEffect, want: guard.Block},
		// unknown tools
		{name: "mcp__wiki__lookup", want: guard.Block}, {name: "mcp__wiki__lookup", declares: guard.NoEffect, want: guard.Allow},
		{name: "", want: guard.Block}, {name: "rеad", want: guard.Block}, {name: "Read", want: guard.Block}, // the second e is Cyrillic
		// shells
		{name: "bash", args: map[string]any{"command": "git status"}, want: guard.Allow},
		{name: "bash", args: map[string]any{"command": "git status", "timeout": 5.0}, want: guard.Allow},
		{name: "bash", declares: guard.NoEffect, args: map[string]any{"command": "rm x"}, want: guard.Block},
		{name: "bash", args: map[string]any{"command": "ls; rm x"}, want: guard.Block},
		{name: "Bash", args: map[string]any{"command": "ls"}, want: guard.Allow}, {name: "shell", args: map[string]any{"cmd": "ls"}, want: guard.Allow},
		{name: "run_command", args: map[string]any{"command": "rm x"}, want: guard.Block}, {name: "bash", want: guard.Block},
		{name: "bash", args: map[string]any{"command": "ls", "cmd": "rm x"}, want: guard.Block},
		{name: "bash", args: map[string]any{"command": []any{"ls"}}, want: guard.Block},
		{name: "bash", args: map[string]any{"command": "ls", "run_in_background": true}, want: guard.Block},
		{name: "bash", args: map[string]any{"command": "ls", "cwd": "/tmp"}, want: guard.Block},
		{name: "bash", args: map[string]any{"command": "ls", "env": map[string]any{"PATH": "."}}, want: guard.Block},
		{name: "bash", args: map[string]any{"script": "ls"}, want: guard.Block},
	} {
		got := guard.Policy{}.Tool(guard.ToolCall{Name: test.name, SideEffect: test.declares, Args: test.args})
		if got.Decision != test.want {
			t.Errorf("%s declaring %q with %v is %s, want %s: %s", test.name, test.declares, test.args, got.Decision, test.want, got.Reason)
		}
		if !got.Allowed() && (!strings.Contains(got.Reason, "exit_plan_mode") || !strings.Contains(got.Reason, "/plan off")) {
			t.Errorf("%s: the reason names no way out: %s", test.name, got.Reason)
		}
	}
}
