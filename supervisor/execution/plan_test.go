package execution_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/supervisor/execution"
)

const plan = `# Plan: a parser

Status: draft

## Implementation Items

- ` + "`I-1`" + `: Write the lexer.
  It goes on here, which does not count.
- ` + "`I-2`" + ` : Write the parser.
  - a nested note about I-2
- ` + "`I-3`" + `: Write the docs.

## Verifier Checklist

Prose between.
- [ ] ` + "`VC-001`" + ` covers ` + "`I-1`, `I-2`" + `; passes when go test ./lex is green; not I-3
- [x] VC-2 covers I-2 and I-1 and I-2; docs
  - [X] see VC-9, but ` + "`VC-003`" + ` covers I-3
- [ ] no id here
* [ ] VC-7 is no dash item

## Risks

- [ ] VC-8 is in another section
`

func TestAPlanIsReadByItsGrammar(t *testing.T) {
	t.Parallel()
	got := execution.Parse(plan)
	want := execution.Plan{
		Items: []execution.Item{{ID: "I-1", Text: "Write the lexer.", Line: 7}, {ID: "I-2", Text: "Write the parser.", Line: 9}, {ID: "I-3", Text: "Write the docs.", Line: 11}},
		Checks: []execution.Check{
			{ID: "VC-001", Text: "`VC-001` covers `I-1`, `I-2`; passes when go test ./lex is green; not I-3", Covers: []string{"I-1", "I-2"}, Line: 16},
			{ID: "VC-2", Text: "VC-2 covers I-2 and I-1 and I-2; docs", Done: true, Covers: []string{"I-2", "I-1"}, Line: 17},
			{ID: "VC-003", Text: "see VC-9, but `VC-003` covers I-3", Done: true, Covers: []string{"I-3"}, Line: 18},
		},
		Problems: []execution.Problem{{Line: 19, Message: "this item has no id such as `VC-001`, so it is not tracked"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := got.Executable(); err != nil {
		t.Error(err)
	}
}

func TestAllEndsOfLinesGiveTheSamePlan(t *testing.T) {
	t.Parallel()
	want := execution.Parse(plan)
	for name, change := range map[string]func(string) string{
		"CRLF":            func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"old Mac CR":      func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
		"byte order mark": func(s string) string { return "\uFEFF" + s },
		"no final end":    func(s string) string { return strings.TrimSuffix(s, "\n") },
		"no-break spaces": func(s string) string { return strings.ReplaceAll(s, "] ", "]\u00A0") },
		"tabs":            func(s string) string { return strings.ReplaceAll(s, "] ", "]\t") },
		"all":             func(s string) string { return "\uFEFF" + strings.ReplaceAll(s, "\n", "\r\n") },
	} {
		if diff := cmp.Diff(want, execution.Parse(change(plan))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWhatIsWrongWithAPlanNamesItsLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text     string
		problems []string
		stops    string // the error of Executable
	}{
		"empty file":             {"", []string{`there is no section "## Verifier Checklist"`}, `there is no section "## Verifier Checklist"`},
		"another level":          {"### Verifier Checklist\n- [ ] VC-1 x\n", []string{`there is no section "## Verifier Checklist"`}, `there is no section "## Verifier Checklist"`},
		"words behind the title": {"## Verifier Checklist (draft)\n- [ ] VC-1 x\n", []string{`there is no section "## Verifier Checklist"`}, `there is no section "## Verifier Checklist"`},
		"no items":               {"a\n##   Verifier Checklist  \n\n- [ ]VC-1 glued\n", []string{"line 4: VC-1 has no check box, so it is not tracked; write \"- [ ] `VC-1` …\"", "line 2: the verifier checklist has no item"}, "line 2: the verifier checklist has no item"},
		"wrapped in a fence":     {"x\n```markdown\n## Verifier Checklist\n- [ ] VC-1 x\n```\n", []string{"line 3: the verifier checklist is inside the code block that line 2 opens"}, "line 3: the verifier checklist is inside the code block that line 2 opens"},
		"a fence that stays open": {"```sh\nmake\n\n## Verifier Checklist\n- [ ] VC-1 x\n",
			[]string{"line 4: the verifier checklist is inside the code block that line 1 opens"}, "line 4: the verifier checklist is inside the code block that line 1 opens"},
		"duplicates": {"## Implementation Items\n- `I-1`: a\n- `I-1`: b\n## Verifier Checklist\n- [ ] VC-1 covers I-1\n- [x] VC-1 again\n",
			[]string{"line 3: I-1 stands on line 2 already; this line does not count", "line 6: VC-1 stands on line 5 already; this line does not count"}, ""},
		"an unknown item": {"## Implementation Items\n- `I-1`: a\n## Verifier Checklist\n- [ ] VC-1 covers I-1, I-4\n",
			[]string{"line 4: VC-1 covers I-4, which is no implementation item"}, ""},
		"quoted items": {"## Verifier Checklist\n- [ ] VC-1 x\n~~~\n- [ ] VC-2 quoted\n## Verifier Checklist\n~~~\n- [ ] VC-3 y\n", nil, ""},
	} {
		p := execution.Parse(c.text)
		var got []string
		for _, problem := range p.Problems {
			got = append(got, problem.Error())
		}
		if len(got) != len(c.problems) {
			t.Errorf("%s: problems are %q, want %q", name, got, c.problems)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], c.problems[i]) {
				t.Errorf("%s: problem is %q, want %q", name, got[i], c.problems[i])
			}
		}
		err := p.Executable()
		var problem execution.Problem
		switch {
		case c.stops == "" && err != nil, c.stops != "" && (!errors.As(err, &problem) || !strings.HasPrefix(err.Error(), c.stops)):
			t.Errorf("%s: got %v, want %q", name, err, c.stops)
		}
	}
}

func TestItemsInFencesAreQuotedText(t *testing.T) {
	t.Parallel()
	p := execution.Parse("## Verifier Checklist\n- [ ] VC-1 x\n````\n```\n- [ ] VC-2 quoted\n````\n```go inline `code` is no fence\n- [ ] VC-3 y\n")
	var ids []string
	for _, check := range p.Checks {
		ids = append(ids, check.ID)
	}
	if diff := cmp.Diff([]string{"VC-1", "VC-3"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestALongTextIsShortenedByCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a \u00a0b\tc\n":         "a b c",
		strings.Repeat("漢", 80):  strings.Repeat("漢", 80),
		strings.Repeat("漢", 81):  strings.Repeat("漢", 79) + "…",
		strings.Repeat("x", 200): strings.Repeat("x", 79) + "…",
	} {
		if got := execution.Shorten(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Any file gives a plan whose ids are each there once and whose lines exist, and a
// plan that cannot be executed says why.
func FuzzAnyTextGivesAPlan(f *testing.F) {
	f.Add(plan)
	f.Add("\uFEFF## Verifier Checklist\r\n- [ ] `VC-1` covers I-1;\r\n```\r\n- [x] VC-2")
	f.Add("## Implementation Items\n- `I-1`: a\n-\t`I-1` :\tb\r## Verifier Checklist\n-\u00A0[x]\u00A0VC-1 I-1")
	f.Fuzz(func(t *testing.T, text string) {
		p := execution.Parse(text)
		lines := 1 + strings.Count(text, "\n") + strings.Count(text, "\r")
		seen := map[string]bool{}
		last := 0
		for _, check := range p.Checks {
			if seen[check.ID] || check.Line <= last || check.Line > lines || !strings.Contains(check.Text, check.ID) {
				t.Errorf("%+v after line %d of %d", check, last, lines)
			}
			seen[check.ID], last = true, check.Line
		}
		if (p.Executable() == nil) != (len(p.Checks) > 0) {
			t.Error(p.Executable())
		}
		crlf := strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
		if diff := cmp.Diff(p, execution.Parse(crlf)); diff != "" {
			t.Errorf("with other ends of lines: %s", diff)
		}
	})
}
