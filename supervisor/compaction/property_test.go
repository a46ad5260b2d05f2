package compaction_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pilothouse/supervisor/compaction"
)

// page is what a summary may have where what it replaces is less.
const page = 2048

// drawSession draws a branch: mostly turns as Pi writes them, with parallel calls,
// and now and then what no Pi should write but some session will hold.
func drawSession(t *rapid.T) (entries []object) {
	n := 0
	id := func() string { n++; return fmt.Sprintf("e-%d", n) }
	samples := rapid.SampledFrom([]string{
		"", "ok", "Fix the parser and add a test for it.", "Always use tabs.", "the build failed: exit status 1", "[Session Goal]", "---", "- (none)",
		"use another file instead\r\nand\rgo on", "\x1b[31mred\x1b[0m \u202e", "\xff\xfe", "请修复解析器，不要改接口", "```\ncode\n```",
	})
	noise := rapid.StringN(0, 300, -1)
	text := func(label string) string { // what is drawn is logged, so not the long ones
		switch rapid.IntRange(0, 5).Draw(t, label) {
		case 0:
			return strings.Repeat("word by word, line by\nline ", rapid.SampledFrom([]int{1, 10, 30, 100, 3000}).Draw(t, "length"))
		case 1:
			return noise.Draw(t, "text")
		}
		return samples.Draw(t, "text")
	}
	name := rapid.SampledFrom([]string{"read", "edit", "write", "bash", "plans", ""})
	args := rapid.SampledFrom([]any{
		object{"path": "src/a.go"}, object{"path": "src/b.go", "edits": []any{"x"}}, object{"command": "cd x && git commit -am 'Do it'"},
		object{"command": "go test ./..."}, object{}, nil, "broken", []any{1},
	})
	callID := func() string { return rapid.SampledFrom([]string{"t-1", "t-2", ""}).Draw(t, "call id") }
	steps := rapid.IntRange(0, 20).Draw(t, "steps")
	for range steps {
		switch rapid.IntRange(0, 19).Draw(t, "step") {
		case 0, 1, 2, 3, 4:
			entries = append(entries, user(id(), text("user")))
		case 5, 6, 7, 8:
			entries = append(entries, assistant(id(), text("assistant")))
		case 9, 10, 11, 12:
			calls := rapid.IntRange(1, 3).Draw(t, "calls")
			var parts, results []object
			for range calls {
				one := id()
				parts = append(parts, call(one, name.Draw(t, "tool"), args.Draw(t, "args")))
				results = append(results, result(id(), one, text("result")))
			}
			entries = append(append(entries, calling(id(), parts...)), results...)
		case 13:
			entries = append(entries, calling(id(), call(callID(), "read", nil)))
		case 14:
			entries = append(entries, result(id(), callID(), text("stray result")))
		case 15:
			stop := rapid.SampledFrom([]string{"aborted", "error", "stop"}).Draw(t, "stop")
			entries = append(entries, message(id(), "assistant", []object{call(callID(), "bash", nil)}, object{"stopReason": stop}))
		case 16:
			code := rapid.SampledFrom([]any{0, 1, nil}).Draw(t, "exit code")
			unseen := rapid.Bool().Draw(t, "unseen")
			entries = append(entries, message(id(), "bashExecution", nil, object{"command": "make", "output": "x", "exitCode": code, "excludeFromContext": unseen}))
		case 17:
			entries = append(entries, rapid.SampledFrom([]object{
				entry(id(), "custom_message", object{"content": "hint"}), entry(id(), "branch_summary", object{"summary": "a branch"}),
				entry(id(), "custom", object{"data": 1}), entry(id(), "novelty", object{"message": object{"role": "user"}}),
				message(id(), "system", "prompt", nil), message(id(), "martian", "?", nil), entry("e-1", "label", nil),
				{"type": "message"}, {"id": "x", "type": "message", "message": 7}, user("e-1", "an id again"), user("", "no id"),
			}).Draw(t, "odd entry"))
		case 18:
			if len(entries) > 0 {
				target := rapid.SampledFrom(entries).Draw(t, "edited")["id"]
				entries = append(entries, entry(id(), "context_edit", object{"targetId": target, "replacement": nil}))
			}
		case 19:
			kept := "gone"
			if len(entries) > 0 && rapid.Bool().Draw(t, "kept") {
				kept, _ = rapid.SampledFrom(entries).Draw(t, "first kept")["id"].(string)
			}
			entries = append(entries, compacted(id(), text("summary"), kept))
		}
	}
	return entries
}

func drawRequest(t *rapid.T) request {
	return request{
		entries: drawSession(t),
		preparation: object{
			"tokensBefore": rapid.IntRange(0, 200_000).Draw(t, "tokens"),
			"fileOps":      object{"read": []string{"r.go"}, "written": []string{"w.go"}, "edited": []string{}},
		},
		instructions: rapid.SampledFrom([]string{"", "keep:0", "keep:1", "keep:2 go on", "keep:99999999999999999999", compaction.PrePlanHint}).Draw(t, "instructions"),
		settings:     object{"smartKeepTail": rapid.Bool().Draw(t, "smart")},
		phase: rapid.SampledFrom([]object{
			nil, {"kind": "planning", "runId": "r", "planPath": "p"}, {"kind": "execution", "planPath": "p", "currentI": "I-1", "implIds": []string{"I-1"}},
		}).Draw(t, "phase"),
	}
}

// check compacts and holds the result to the invariants of the package.
func check(t *rapid.T, r request) (after []object, ok bool) {
	data := r.marshal(t)
	parsed, err := compaction.ParseRequest(data)
	if err != nil {
		t.Fatal(err)
	}
	got := compaction.Compact(parsed)
	again := compaction.Compact(parsed)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Fatalf("the second result is another: %s", diff)
	}
	if got.Action != compaction.Compacted {
		return nil, false
	}
	c := *got.Compaction
	if !utf8.ValidString(c.Summary) {
		t.Fatal("the summary is no UTF-8")
	}
	before, kept := seen(r.entries), replay(r.entries, c)
	if problem := kept.problem(); problem != "" {
		t.Fatalf("kept from %q: %s", c.FirstKeptEntryID, problem)
	}
	replaced := chars(before.messages) - chars(kept.messages) + utf8.RuneCountInString(before.summary)
	if n := utf8.RuneCountInString(c.Summary); n > max(replaced, page) {
		t.Fatalf("%d characters replace %d", n, replaced)
	}
	return append(r.entries, compacted("c-"+fmt.Sprint(len(r.entries)), c.Summary, c.FirstKeptEntryID)), true
}

func TestInvariantsHoldForAnySession(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { check(t, drawRequest(t)) })
}

func TestInvariantsHoldForCompactionsInARow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		for range 3 {
			after, ok := check(t, r)
			if !ok {
				return
			}
			r.entries = append(after, drawSession(t)...)
		}
	})
}
