package compaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/supervisor/compaction"
)

// section is the body of a section of a summary.
func section(summary, header string) []string {
	_, rest, _ := strings.Cut("\n"+summary, "\n["+header+"]\n")
	body, _, _ := strings.Cut(rest, "\n\n")
	return strings.Split(body, "\n")
}

// transcript is the brief of a summary, by lines.
func transcript(summary string) []string {
	_, brief, _ := strings.Cut(summary, "\n---\n\n")
	return strings.Split(brief, "\n")
}

// end is a turn that stays, so that all before it is summarised with keep:1.
var end = []object{user("u-end", "and now the rest"), assistant("a-end", "yes")}

// summary is that of the entries, all summarised.
func summary(t *testing.T, entries ...object) string {
	t.Helper()
	return request{entries: concat(entries, end), instructions: "keep:1"}.compaction(t).Summary
}

func TestASummaryHasFiveSectionsAndATranscript(t *testing.T) {
	t.Parallel()
	got := request{
		entries: []object{
			user("u-1", "Please implement repo-private compaction. Always keep ASCII output."),
			calling("c-1", call("t1", "edit", object{"path": "src/compaction.ts"})), result("r-1", "t1", "edited"),
			assistant("a-1", "Updated src/compaction.ts and ran npm test."),
			user("u-2", "Continue execution."), assistant("a-2", "Current work is in the retained tail."),
		},
		preparation: object{
			"tokensBefore": 40_000, "previousSummary": "## Legacy Summary\nEarlier compact facts.",
			"fileOps": object{"read": []string{"src/exec.ts"}, "written": []string{"src/compaction.ts", "src/new.ts"}, "edited": []string{}},
		},
		instructions: "__pi_vcc__ keep:1", reason: "threshold",
		phase: object{
			"kind": "execution", "planPath": "/repo/PLAN_v3.md", "currentI": "I-002",
			"remainingVcs": []string{"VC-002"}, "implIds": []string{"I-001", "I-002"},
		},
	}.compaction(t)
	want := `[Session Goal]
- Execute accepted plan /repo/PLAN_v3.md
- Please implement repo-private compaction. Always keep ASCII output.

[Files And Changes]
- Modified: src/compaction.ts
- Created: src/new.ts
- Read: src/exec.ts

[Commits]
- (none)

[Outstanding Context]
- Current implementation item: I-002
- Remaining verification: VC-002
- Implementation items: I-001, I-002
- Previous compact summary: Legacy Summary Earlier compact facts.

[User Preferences]
- (none)

---

[user]
Please implement repo-private compaction. Always keep ASCII output. (#0)

[assistant]
* edit "src/compaction.ts" (#1)
Updated src/compaction.ts and ran npm test. (#3)`
	if diff := cmp.Diff(want, got.Summary); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want2 := compaction.Details{
		Compactor: "pi-vcc", Version: 1,
		Sections:           []string{"[Session Goal]", "[Files And Changes]", "[Commits]", "[Outstanding Context]", "[User Preferences]"},
		SourceMessageCount: 4, PreviousSummaryUsed: true, Reason: "threshold", Phase: "execution", Stats: got.Details.Stats,
	}
	if diff := cmp.Diff(want2, got.Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	if got.FirstKeptEntryID != "u-2" || got.TokensBefore != 40_000 || got.Details.Stats.KeptUserTurns != 1 {
		t.Errorf("kept from %q, before %d, stats %+v", got.FirstKeptEntryID, got.TokensBefore, got.Details.Stats)
	}
}

func TestPlanningTellsItsRunPlanAndItem(t *testing.T) {
	t.Parallel()
	got := request{
		entries: concat([]object{
			user("u-1", "plan the migration"), assistant("a-1", "[I-001:current] and then [I-002:current]"), assistant("a-2", "more"),
		}, end),
		instructions: "keep:1",
		phase:        object{"kind": "planning", "runId": "20261130T100000Z-migration", "artifactDir": "docs/pi-plans/x", "planPath": "docs/pi-plans/x/PLAN_v1.md"},
	}.compaction(t)
	if diff := cmp.Diff([]string{"- Continue planning run 20261130T100000Z-migration", "- plan the migration"}, section(got.Summary, "Session Goal")); diff != "" {
		t.Errorf("goals (-want +got):\n%s", diff)
	}
	want := []string{"- Latest plan: docs/pi-plans/x/PLAN_v1.md", "- Artifact directory: docs/pi-plans/x", "- Current implementation item: I-002"}
	if diff := cmp.Diff(want, section(got.Summary, "Outstanding Context")); diff != "" {
		t.Errorf("outstanding (-want +got):\n%s", diff)
	}
	if got.Details.Phase != "planning" {
		t.Errorf("phase %q", got.Details.Phase)
	}
}

func TestGoalsAreTheFirstWishAndItsLastChange(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		users []string
		want  []string
	}{
		{"list marks, code, paths, addresses, boxes and small talk are left out", []string{
			"hello", "thanks!\n- Fix the parser\n2. Add a test\n```\nnot this line\n```\nhttps://example.org/x\nsrc/parser/lexer.go\n│ box │\nfoo();\nshort",
		}, []string{"- Fix the parser", "- Add a test"}},
		{"at most six lines", []string{"line one\nline two\nline three\nline four\nline five\nline six!\nline seven"}, []string{
			"- line one", "- line two", "- line three", "- line four", "- line five", "- line six!",
		}},
		{"a change of scope replaces the one before it", []string{
			"Fix the parser", "why is it slow?", "Actually, look at the lexer", "Refactor the lexer into two files\nand keep its tests\nand more",
		}, []string{"- Fix the parser", "- [Scope change] Refactor the lexer into two files", "- [Scope change] and keep its tests"}},
		{"a short order is no change of scope", []string{"Fix the parser", "run the tests", "fix it now"}, []string{"- Fix the parser"}},
		{"in Chinese", []string{"实现一个新的解析器模块", "改为使用递归下降"}, []string{"- 实现一个新的解析器模块", "- [Scope change] 改为使用递归下降"}},
		{"none", []string{"ok", "yes"}, []string{"- (none)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var entries []object
			for i, text := range test.users {
				entries = append(entries, user(fmt.Sprintf("u-%d", i), text), assistant(fmt.Sprintf("a-%d", i), "ok"))
			}
			if diff := cmp.Diff(test.want, section(summary(t, entries...), "Session Goal")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFilesAreListedByWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	var entries []object
	for i, c := range []object{
		call("", "read", object{"path": "a.go"}), call("", "view", object{"file_path": "b.go"}), call("", "multiedit", object{"filePath": "c.go"}),
		call("", "write", object{"path": "d.go"}), call("", "apply_patch", object{"filename": "c.go"}), call("", "grep", object{"path": "e.go"}),
		call("", "read", object{"path": ""}), call("", "read", nil),
	} {
		c["id"] = fmt.Sprintf("t-%d", i)
		entries = append(entries, calling(fmt.Sprintf("c-%d", i), c), result(fmt.Sprintf("r-%d", i), fmt.Sprintf("t-%d", i), "ok"))
	}
	if diff := cmp.Diff([]string{"- Modified: c.go, d.go", "- Read: a.go, b.go"}, section(summary(t, entries...), "Files And Changes")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	var many []string
	for i := range 13 {
		many = append(many, fmt.Sprintf("f%02d", i))
	}
	got := request{
		entries: concat(turns(2), end), instructions: "keep:1",
		preparation: object{"tokensBefore": 1, "fileOps": object{"read": many, "written": object{}, "edited": nil}},
	}.compaction(t)
	want := []string{"- Read: f03, f04, f05, f06, f07, f08, f09, f10, f11, f12 (+3 more)"}
	if diff := cmp.Diff(want, section(got.Summary, "Files And Changes")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCommitsCarryTheHashThatGitPrinted(t *testing.T) {
	t.Parallel()
	var entries []object
	for i, c := range []struct{ command, output string }{
		{`git add -A && git commit -m "Add the parser

And more."`, "[main 1a2b3c4] Add the parser"},
		{`git -C x commit -am 'Fix it'`, "nothing"},
		{`echo 'git push'; git commit --message="Third"`, "[main abcdef0123] Third"},
		{`git commit --amend --no-edit`, "[main 9999999] no message"},
		{`git log -m "no"`, ""},
		{`git commit -am 'Fix it'`, ""},
	} {
		id := fmt.Sprint(i)
		entries = append(entries, calling("c"+id, call("t"+id, "bash", object{"command": c.command})), result("r"+id, "t"+id, c.output))
	}
	if diff := cmp.Diff([]string{"- 1a2b3c4 Add the parser", "- Fix it", "- abcdef0123 Third"}, section(summary(t, entries...), "Commits")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheLastTroubleIsOutstanding(t *testing.T) {
	t.Parallel()
	long := "The build failed because of a missing header. " + strings.Repeat("And so on it went. ", 20)
	entries := []object{
		user("u-0", "look at the parser"),
		calling("c-1", call("t-1", "bash", object{"command": "make failed-error-target-of-the-build"})), result("r-1", "t-1", "ok so far\nerror: undefined reference to main\n"),
		user("u-1", "it is still broken for me"), assistant("a-1", long), assistant("a-2", "error"),
	}
	want := []string{
		"- error: undefined reference to main", "- [user] it is still broken for me",
		"- The build failed because of a missing header. And so on it went. And so on it went. And so on it went. And so on it went. And so on it went.",
	}
	if diff := cmp.Diff(want, section(summary(t, entries...), "Outstanding Context")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPreferencesAreOneLineOfAMessageThatIsNoGoal(t *testing.T) {
	t.Parallel()
	entries := []object{
		user("u-0", "Always use tabs in this project"), assistant("a-0", "ok"),
		user("u-1", "what next\nI prefer small commits\nnever force-push"), assistant("a-1", "ok"),
		user("u-2", "do you prefer this?"), assistant("a-2", "ok"),
		user("u-3", "don't want new dependencies"), assistant("a-3", "ok"), user("u-4", "不要改动公共接口"),
	}
	want := []string{"- I prefer small commits", "- don't want new dependencies", "- 不要改动公共接口"}
	if diff := cmp.Diff(want, section(summary(t, entries...), "User Preferences")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheTranscriptMergesSpeakersAndLeavesResultsOut(t *testing.T) {
	t.Parallel()
	entries := []object{
		user("u-0", strings.Repeat("wide ", 100)),
		assistant("a-0", "Let me just look at it.\nReally."),
		calling("c-1", call("t1", "bash", object{"command": "cd /repo\nexport A=1\ngo test ./... && git status"}), call("t2", "search", object{"query": "parser \x1b[31mred\x1b[0m"}), call("t3", "noop", object{})),
		result("r-1", "t1", "SECRET OUTPUT"), result("r-2", "t2", "x"), result("r-3", "t3", "x"),
		message("b-1", "bashExecution", nil, object{"command": "make", "output": "x", "exitCode": 2}),
		message("b-2", "bashExecution", nil, object{"command": "cat .env", "output": "x", "excludeFromContext": true}),
		message("u-1", "user", []object{{"type": "image", "mimeType": "image/png", "data": "AAAA"}}, nil),
	}
	want := []string{
		"[user]",
		strings.TrimSpace(strings.Repeat("wide ", 24)), strings.TrimSpace(strings.Repeat("wide ", 24)), "wide wide wide… (#0)",
		"",
		"[assistant]",
		"look at it. . (#1)",
		`* bash "go test ./... && git status" (#2)`,
		`* search "parser red" (#2)`,
		"* noop (#2)",
		"",
		"[user]",
		`* ! "make" failed (#6)`,
		"[image: image/png] (#7)",
	}
	got := transcript(summary(t, entries...))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheTranscriptPrefersWhatCounts(t *testing.T) {
	t.Parallel()
	var entries []object
	for i := range 300 {
		id := fmt.Sprint(i)
		c := call("t"+id, "ls", object{"path": "dir" + id})
		if i == 100 {
			c = call("t"+id, "edit", object{"path": "important.go"})
		}
		entries = append(entries, calling("c"+id, c), result("r"+id, "t"+id, "x"))
		if i == 200 {
			entries = append(entries, user("u-0", "the wish of the user"))
		}
	}
	got := strings.Join(transcript(summary(t, entries...)), "\n")
	for _, want := range []string{"the wish of the user", "important.go", "dir299", "dir284"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in the transcript", want)
		}
	}
	if lines := strings.Count(got, "* "); lines < 30 || lines > 80 {
		t.Errorf("%d calls in the transcript", lines)
	}
	positions := []int{strings.Index(got, "important.go"), strings.Index(got, "the wish"), strings.Index(got, "dir284"), strings.Index(got, "dir299")}
	if !slices.IsSorted(positions) {
		t.Errorf("out of order: %v", positions)
	}
}
