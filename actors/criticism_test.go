package actors_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
)

// criticismOf is a well-formed criticism with two questions.
const criticismOf = `## Summary
It all rests on one clock. Nobody measures it.

## Questions
1. Which clock does I-002 use?
   Why: VC-001 compares two of them.
2. Who sets it?
   Why: I-004 names nobody.
`

func wantCriticism() actors.Criticism {
	return actors.Criticism{
		Summary: "It all rests on one clock. Nobody measures it.",
		Questions: []actors.Question{
			{Number: 1, Text: "Which clock does I-002 use?", Why: "VC-001 compares two of them."},
			{Number: 2, Text: "Who sets it?", Why: "I-004 names nobody."},
		},
		WellFormed: true, Problems: []string{},
	}
}

func TestACriticismIsReadInItsUsualSpellings(t *testing.T) {
	t.Parallel()
	replace := func(pairs ...string) string {
		out := strings.NewReplacer(pairs...).Replace(criticismOf)
		if out == criticismOf {
			panic("nothing replaced by " + pairs[0])
		}
		return out
	}
	for name, output := range map[string]string{
		"as the prompt sets it":        criticismOf,
		"CRLF":                         strings.ReplaceAll(criticismOf, "\n", "\r\n"),
		"byte order mark":              "\uFEFF" + criticismOf,
		"fenced":                       "```markdown\n" + criticismOf + "```\n",
		"a title":                      "# Criticism of PLAN_v1\n\n" + criticismOf,
		"other headings":               replace("## Summary", "### Criticism summary", "## Questions", "### Open questions:"),
		"numbered headings":            replace("## Summary", "## 1. Summary", "## Questions", "## 2. Questions"),
		"bold headings":                replace("## Summary", "**Summary**", "## Questions", "**Questions:**"),
		"labels for headings":          replace("## Summary\n", "**Summary:** ", "## Questions", "Questions:"),
		"no headings":                  replace("## Summary\n", "", "## Questions\n", ""),
		"summary over lines":           replace("clock. Nobody", "clock.\nNobody"),
		"summary as a bullet":          replace("It all", "- It all"),
		"parentheses":                  replace("1. ", "1) ", "2. ", "2) "),
		"Q numbers":                    replace("1. Which", "Q1: Which", "2. Who", "**Q2.** Who"),
		"question headings":            replace("1. Which", "### Question 1: Which", "2. Who", "### 2. Who"),
		"bold questions":               replace("1. Which clock does I-002 use?", "1. **Which clock does I-002 use?**", "2. Who sets it?", "**2. Who sets it?**"),
		"question over lines":          replace("Which clock ", "Which clock\n   "),
		"bulleted reasons":             replace("   Why:", "   - **Why it matters:**"),
		"reasons in italics":           replace("   Why: VC-001 compares two of them.", "   *Why: VC-001 compares two of them.*"),
		"reasons on the line":          replace("?\n   Why: ", "? Why: "),
		"reasons in parentheses":       replace("?\n   Why: VC-001 compares two of them.", "? (Why it matters: VC-001 compares two of them.)"),
		"reasons behind a dash":        replace("?\n   Why: ", "? — *Why this matters*: "),
		"reasons without the label":    replace("   Why: ", "   "),
		"reasons after a blank line":   replace("\n   Why: ", "\n\n   Why: "),
		"reasons not indented":         replace("   Why: ", "Why: "),
		"reason over lines":            replace("compares two", "compares\n   two"),
		"blank lines between":          strings.ReplaceAll(criticismOf, "\n", "\n\n"),
		"prose after":                  criticismOf + "\nI read all of it.\n",
		"another part after":           criticismOf + "\n## Notes\n1. nothing\nWhy: because\n",
		"quoted code inside":           replace("2. Who", "```\n7. not a question\n```\n2. Who"),
		"a rule between":               replace("\n## Questions", "\n---\n\n## Questions"),
		"full-width colon and numbers": replace("Why:", "Why：", "1. ", "1：", "2. ", "2："),
	} {
		got := actors.ParseCriticism(output)
		if diff := cmp.Diff(wantCriticism(), got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestACriticismThatBreaksTheContractSaysWhatIsOff(t *testing.T) {
	t.Parallel()
	const noQuestion = `the answer has no numbered question and does not say "No questions."`
	six := criticismOf + "3. a?\n   Why: b\n4. a?\n   Why: b\n5. a?\n   Why: b\n"
	for name, test := range map[string]struct {
		output    string
		questions int
		want      []string
	}{
		"nothing":            {"", 0, []string{"the summary is missing", noQuestion}},
		"LGTM":               {"LGTM", 0, []string{noQuestion}},
		"half JSON":          {`{"summary":"It all","questions":[{"te`, 0, []string{noQuestion}},
		"cut off in a fence": {"```markdown\n" + criticismOf, 0, []string{"a code block is never closed, so the answer may be cut off", "the summary is missing", noQuestion}},
		"no summary":         {strings.Replace(criticismOf, "It all rests on one clock. Nobody measures it.", "", 1), 2, []string{"the summary is missing"}},
		"a long summary":     {strings.Replace(criticismOf, "measures it.", "measures it. So it fails. Or not!", 1), 2, []string{"the summary has 4 sentences, at most 3 may be"}},
		"a long summary, no blanks": {strings.Replace(criticismOf, "It all rests on one clock. Nobody measures it.", "一。二。三。四。", 1), 2,
			[]string{"the summary has 4 sentences, at most 3 may be"}},
		"three sentences, dots": {strings.Replace(criticismOf, "It all rests on one clock.", "It rests on a.go, e.g. Line 3 of v1.2 (see b.md). One clock!", 1), 2, []string{}},
		"no reason":             {strings.Replace(criticismOf, "   Why: I-004 names nobody.\n", "", 1), 2, []string{"question 2 does not say why it matters"}},
		"an empty question":     {"A point.\n1. \n   Why: x\n", 1, []string{"question 1 is empty"}},
		"five questions":        {six, 5, []string{}},
		"six questions":         {six + "6. a?\n   Why: b\n", 6, []string{"6 questions are asked, at most 5 may be"}},
		"the same number":       {strings.ReplaceAll(criticismOf, "2. ", "1. "), 2, []string{"the number 1 is used by more than one question"}},
		"holds and does not":    {strings.Replace(criticismOf, "## Questions\n", "## Questions\nNo questions.\n", 1), 2, []string{`the answer says "No questions." and asks questions`}},
		"holds, no summary":     {"## Questions\nNo questions.\n", 0, []string{"the summary is missing"}},
		"bullets, no numbers":   {"A point.\n- Which clock?\n- Who sets it?\n", 0, []string{noQuestion}},
	} {
		got := actors.ParseCriticism(test.output)
		if diff := cmp.Diff(test.want, got.Problems); diff != "" {
			t.Errorf("%s: problems:\n%s", name, diff)
		}
		if len(got.Questions) != test.questions {
			t.Errorf("%s: %d questions, want %d", name, len(got.Questions), test.questions)
		}
		if got.WellFormed != (len(test.want) == 0) || got.Holds {
			t.Errorf("%s: well formed %v, holds %v", name, got.WellFormed, got.Holds)
		}
	}
}

func TestACriticismHoldsOnlyWhenItSaysSoWithASummary(t *testing.T) {
	t.Parallel()
	for name, output := range map[string]string{
		"as the prompt sets it": "## Summary\nThe order holds.\n\n## Questions\nNo questions.\n",
		"a bullet in bold":      "## Summary\nThe order holds.\n\n## Questions\n- **No questions.**\n",
		"a heading":             "## Summary\nThe order holds.\n\n## No questions\n",
		"no headings":           "The order holds.\n\nNo questions.\n",
	} {
		want := actors.Criticism{Summary: "The order holds.", Questions: []actors.Question{}, Holds: true, WellFormed: true, Problems: []string{}}
		if diff := cmp.Diff(want, actors.ParseCriticism(output)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestACriticismInAnotherLanguageIsRead(t *testing.T) {
	t.Parallel()
	want := actors.Criticism{
		Summary: "一切都取决于一个时钟。没有人测量它。",
		Questions: []actors.Question{
			{Number: 1, Text: "I-002 用的是哪个时钟？", Why: "VC-001 比较两个。"},
			{Number: 2, Text: "谁来设置？", Why: "I-004 没有指明。"},
		},
		WellFormed: true, Problems: []string{},
	}
	output := "## Summary\n一切都取决于一个时钟。没有人测量它。\n\n## Questions\n1. I-002 用的是哪个时钟？\n   Why: VC-001 比较两个。\n2. 谁来设置？\n   I-004 没有指明。\n"
	if diff := cmp.Diff(want, actors.ParseCriticism(output)); diff != "" {
		t.Error(diff)
	}
}

func TestACriticismIsOneJSONObjectWithoutNulls(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(actors.ParseCriticism("A point.\n1. a?\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"summary":"A point.","questions":[{"number":1,"text":"a?","why":""}],"holds":false,"wellFormed":false,"problems":["question 1 does not say why it matters"]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func FuzzParseCriticism(f *testing.F) {
	for _, seed := range []string{
		"", "LGTM", criticismOf, "```md\n" + criticismOf + "```", "x\n1. a?\nb", "### Q1: a (Why: b)\n#### Why\nc", "No questions.", "1.\n2.\n**Why:**", "\xff\r1) ？\r\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, output string) {
		c := actors.ParseCriticism(output)
		if c.WellFormed != (len(c.Problems) == 0) {
			t.Fatalf("well formed %v with problems %q", c.WellFormed, c.Problems)
		}
		if c.Holds && (!c.WellFormed || len(c.Questions) > 0) {
			t.Fatalf("holds with %+v", c)
		}
		if c.WellFormed {
			if c.Summary == "" || len(c.Questions) > 5 || len(c.Questions) == 0 && !c.Holds {
				t.Fatalf("well formed: %+v", c)
			}
			numbers := map[int]bool{}
			for _, q := range c.Questions {
				if q.Text == "" || q.Why == "" || numbers[q.Number] {
					t.Fatalf("well formed with question %+v", q)
				}
				numbers[q.Number] = true
			}
		}
		text, err := json.Marshal(c)
		if err != nil || !utf8.Valid(text) {
			t.Fatalf("no JSON: %v", err)
		}
	})
}
