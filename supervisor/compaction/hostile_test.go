package compaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pilothouse/supervisor/compaction"
)

// raw is a request whose entries are JSON as it came over the wire.
func raw(t *testing.T, entries ...string) compaction.Compaction {
	t.Helper()
	entries = append(entries,
		`{"id":"u-end","type":"message","message":{"role":"user","content":"and now the rest"}}`,
		`{"id":"a-end","type":"message","message":{"role":"assistant","content":[{"type":"text","text":"yes"}]}}`)
	r, err := compaction.ParseRequest([]byte(`{"customInstructions":"keep:1","branchEntries":[` + strings.Join(entries, " ,\r\n\t") + "]}"))
	if err != nil {
		t.Fatal(err)
	}
	got := compaction.Compact(r)
	if got.Action != compaction.Compacted {
		t.Fatalf("%s: %s", got.Action, got.Reason)
	}
	return *got.Compaction
}

func TestTextsArriveReadable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"a lone surrogate", `fix \ud83d this \ude00 text`, "- fix \uFFFD this \uFFFD text"},
		{"a pair of surrogates", `fix \ud83d\ude00 this`, "- fix 😀 this"},
		{"bytes that are no text", "fix \xff\xfe this", "- fix \uFFFD this"},
		{"line ends of Windows", `fix this\r\nand that\rtoo, please`, "- fix this\n- and that\n- too, please"},
		{"escapes", `fix \"this\" \u0041nd \\ that\/`, `- fix "this" And \ that/`},
		{"terminal codes", `\u001b[1;31mfix\u001b[0m this \u001b]0;title\u0007now`, "- fix this now"},
		{"controls and turned text", `fi\u0000x\u0008 th\u202eis\u2066 now`, "- fix this now"},
	} {
		got := raw(t, `{"id":"u-1","type":"message","message":{"role":"user","content":"`+test.text+`"}}`).Summary
		if goals := strings.Join(section(got, "Session Goal"), "\n"); goals != test.want || !utf8.ValidString(got) {
			t.Errorf("%s: %q, want %q", test.name, goals, test.want)
		}
	}
}

func TestStrangeEntriesDoNoHarm(t *testing.T) {
	t.Parallel()
	first := `{"id":"u-1","type":"message","message":{"role":"user","content":"Fix the parser"}}`
	for _, strange := range []string{
		`null`, `[]`, `"text"`, `17`, `{}`, `{"type":"novelty","id":"n"}`, `{"type":"message","id":"n"}`, `{"type":"message","id":"n","message":null}`,
		`{"type":"message","id":"n","message":{"role":"oracle","content":"x"}}`, `{"type":"message","id":"n","message":{"role":"user"}}`,
		`{"type":"message","id":"n","message":{"role":"user","content":[null,1,"x",[],{},{"type":"novelty"},{"type":"text"},{"type":"text","text":7}]}}`,
		`{"type":"message","id":"n","message":{"role":"assistant","content":[{"type":"toolCall"}]}}`,
		`{"type":"message","id":"n","message":{"role":"toolResult","content":null}}`,
		`{"type":"message","id":"n","message":{"role":"bashExecution"}}`, `{"type":"custom_message","id":"n"}`, `{"type":"branch_summary"}`,
		`{"type":"context_edit","id":"n","targetId":"u-2","replacement":7}`, `{"type":"context_edit","id":"n"}`,
		`{"id":"n","type":"message","timestamp":"1970-01-01T00:00:00Z","message":{"timestamp":-1,"role":"user","content":"long ago"}}`,
		`{"typ\u0065":"message","id":"n","message":{"role":"user","role":"assistant","content":"the last key counts"}}`,
	} {
		got := raw(t, first, `{"id":"u-2","type":"message","message":{"role":"user","content":"x"}}`, strange)
		if goals := section(got.Summary, "Session Goal"); !slices.Contains(goals, "- Fix the parser") {
			t.Errorf("%s: goals %q", strange, goals)
		}
		if got.FirstKeptEntryID != "u-end" {
			t.Errorf("%s: kept from %q", strange, got.FirstKeptEntryID)
		}
	}
}

func TestAnEditedContextIsWhatCounts(t *testing.T) {
	t.Parallel()
	got := raw(t,
		`{"id":"u-1","type":"message","message":{"role":"user","content":"Fix the secret thing"}}`,
		`{"id":"u-2","type":"message","message":{"role":"user","content":"Fix the old thing"}}`,
		`{"id":"u-3","type":"message","message":{"role":"user","content":"x"}}`,
		`{"id":"e-1","type":"context_edit","targetId":"u-1","replacement":null}`,
		`{"id":"e-2","type":"context_edit","targetId":"u-2","replacement":{"content":"Fix the wrong thing"}}`,
		`{"id":"e-3","type":"context_edit","targetId":"u-2","replacement":{"content":[{"type":"text","text":"Fix the new thing"}]}}`)
	if goals := section(got.Summary, "Session Goal"); !slices.Equal(goals, []string{"- Fix the new thing"}) {
		t.Errorf("goals %q", goals)
	}
}

func TestALongSessionIsCompiledWhole(t *testing.T) {
	t.Parallel()
	const n = 100_000
	entries := make([]string, 0, n)
	entries = append(entries, `{"id":"u-0","type":"message","message":{"role":"user","content":"Fix the first of all"}}`)
	for i := 1; len(entries) < n-4; i++ {
		entries = append(entries,
			fmt.Sprintf(`{"id":"c-%d","type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"t-%d","name":"edit","arguments":{"path":"f%d.go"}}]}}`, i, i, i%20),
			fmt.Sprintf(`{"id":"r-%d","type":"message","message":{"role":"toolResult","toolCallId":"t-%d","content":[{"type":"text","text":"done"}]}}`, i, i))
	}
	got := raw(t, entries...)
	if got.FirstKeptEntryID != "u-end" || got.Details.SourceMessageCount != len(entries) || !slices.Equal(section(got.Summary, "Session Goal"), []string{"- Fix the first of all"}) {
		t.Errorf("kept from %q, %d summarised", got.FirstKeptEntryID, got.Details.SourceMessageCount)
	}
	if c := length(got.Summary); c > 40_000 {
		t.Errorf("%d characters", c)
	}
}

func length(s string) int { return utf8.RuneCountInString(s) }

func FuzzARequestIsReadOrRefused(f *testing.F) {
	f.Add([]byte(`{"preparation":{"tokensBefore":1e400,"fileOps":{"read":["a"]}},"branchEntries":[{"id":"u","type":"message","message":{"role":"user","content":"\ud800"}}],"phase":null}`))
	f.Add(request{entries: concat(turns(3), end), instructions: "keep:1 go on"}.marshal(f))
	f.Add(request{entries: []object{
		user("u", "a"), calling("c", call("t", "bash", object{"command": "git commit -m 'x'"})), result("r", "t", "y"), compacted("x", "[Session Goal]\n- a\n\n---\n\nb", "c"),
		assistant("a", "b"), assistant("d", "e"), entry("z", "context_edit", object{"targetId": "a", "replacement": nil}), user("v", "w"),
	}}.marshal(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := compaction.ParseRequest(data)
		if err != nil {
			return
		}
		got := compaction.Compact(r)
		if (got.Action == compaction.Compacted) != (got.Compaction != nil) || got.Action != compaction.Compacted && got.Reason == "" {
			t.Fatalf("%+v", got)
		}
		if got.Compaction != nil && !utf8.ValidString(got.Compaction.Summary) {
			t.Fatal("the summary is no UTF-8")
		}
	})
}
