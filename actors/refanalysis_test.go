package actors_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
)

// analysisOf is a well-formed analysis.
const analysisOf = `## Overview
A queue.

## Key Mechanisms And Design Tradeoffs
One writer (q.go:3).

## Adoptable Ideas For The Target Repo
- The writer.

## Pitfalls And Anti-Patterns
- No limit.

## Evidence Citations
- q.go:3 — "go write()"

## Coverage
All of it.

## Evidence Gaps
None that matter.
`

func wantAnalysis() actors.RefSections {
	return actors.RefSections{
		Overview: "A queue.", Mechanisms: "One writer (q.go:3).", Adoptable: "- The writer.", Pitfalls: "- No limit.",
		Citations: `- q.go:3 — "go write()"`, Coverage: "All of it.", Gaps: "None that matter.",
		WellFormed: true, Problems: []string{},
	}
}

func TestAnAnalysisIsReadInItsUsualSpellings(t *testing.T) {
	t.Parallel()
	replace := func(pairs ...string) string {
		out := strings.NewReplacer(pairs...).Replace(analysisOf)
		if out == analysisOf {
			panic("nothing replaced by " + pairs[0])
		}
		return out
	}
	for name, output := range map[string]string{
		"as the prompt sets it": analysisOf,
		"CRLF":                  strings.ReplaceAll(analysisOf, "\n", "\r\n"),
		"CR":                    strings.ReplaceAll(analysisOf, "\n", "\r"),
		"byte order mark":       "\uFEFF" + analysisOf,
		"fenced":                "\n```markdown\n" + analysisOf + "```\n",
		"a title and prose":     "# Reference a\n\nHere it is.\n\n" + analysisOf,
		"deeper headings":       strings.ReplaceAll(analysisOf, "## ", "### "),
		"first-level headings":  strings.ReplaceAll(analysisOf, "## ", "# "),
		"bold headings":         replace("## Overview", "**Overview**", "## Key Mechanisms And Design Tradeoffs", "**Key Mechanisms And Design Tradeoffs:**", "## Adoptable Ideas For The Target Repo", "__Adoptable Ideas For The Target Repo__", "## Pitfalls And Anti-Patterns", "**Pitfalls And Anti-Patterns**", "## Evidence Citations", "**Evidence Citations**", "## Coverage", "**Coverage**", "## Evidence Gaps", "**Evidence Gaps**"),
		"numbers":               replace("## Overview", "## 1. Overview", "## Coverage", "## 6) Coverage"),
		"capitals and colons":   replace("## Overview", "## OVERVIEW:", "Anti-Patterns", "antipatterns", "Tradeoffs", "Trade-offs"),
		"signs for and":         replace("Mechanisms And Design", "Mechanisms & Design"),
		"bold inside a heading": replace("## Coverage", "## **Coverage**"),
		"closed headings":       replace("## Coverage", "## Coverage ##"),
	} {
		if diff := cmp.Diff(wantAnalysis(), actors.ParseRefAnalysis(output)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestASectionKeepsItsMarkdown(t *testing.T) {
	t.Parallel()
	inner := "### Coverage\nOf tests: none.\n\n```md\n## Overview\nquoted\n```\n**Evidence Gaps**\n> ## Coverage"
	output := strings.Replace(analysisOf, "- The writer.", inner, 1)
	want := wantAnalysis()
	want.Adoptable = inner
	if diff := cmp.Diff(want, actors.ParseRefAnalysis(output)); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnalysisInAnotherLanguageIsRead(t *testing.T) {
	t.Parallel()
	got := actors.ParseRefAnalysis(strings.Replace(analysisOf, "A queue.", "一个队列。\n\n没有测试。", 1))
	if !got.WellFormed || got.Overview != "一个队列。\n\n没有测试。" {
		t.Errorf("overview %q, problems %q", got.Overview, got.Problems)
	}
}

func TestAnAnalysisThatBreaksTheContractSaysWhatIsOff(t *testing.T) {
	t.Parallel()
	head, _, _ := strings.Cut(analysisOf, "All of it.")
	missing := []string{
		`the section "Overview" is missing`, `the section "Key Mechanisms And Design Tradeoffs" is missing`,
		`the section "Adoptable Ideas For The Target Repo" is missing`, `the section "Pitfalls And Anti-Patterns" is missing`,
		`the section "Evidence Citations" is missing`, `the section "Coverage" is missing`, `the section "Evidence Gaps" is missing`,
	}
	for name, test := range map[string]struct {
		output string
		want   []string
	}{
		"nothing":            {"", missing},
		"LGTM":               {"LGTM", missing},
		"half JSON":          {`{"overview":"A qu`, missing},
		"cut off in a fence": {"```markdown\n" + analysisOf, append(append([]string{}, missing...), "a code block is never closed, so the answer may be cut off")},
		"cut off":            {head, []string{`the section "Coverage" is empty`, `the section "Evidence Gaps" is missing`}},
		"an empty section":   {strings.Replace(analysisOf, "A queue.", " \t", 1), []string{`the section "Overview" is empty`}},
		"no citation":        {strings.Replace(analysisOf, `q.go:3 — "go write()"`, "the code", 1), []string{`the section "Evidence Citations" cites no place in the reference`}},
		"twice":              {analysisOf + "## Evidence Gaps\nMore.\n", []string{`the section "Evidence Gaps" appears more than once`}},
		"out of order": {strings.NewReplacer("## Coverage", "## Evidence Gaps", "## Evidence Gaps", "## Coverage").Replace(analysisOf),
			[]string{`the section "Coverage" comes after "Evidence Gaps"`}},
		"an eighth":            {analysisOf + "## Verdict\nAdopt.\n", []string{`the heading "Verdict" is none of the seven sections`}},
		"a title in the midst": {strings.Replace(analysisOf, "## Coverage", "# Part two\n## Coverage", 1), []string{`the heading "Part two" is none of the seven sections`}},
	} {
		got := actors.ParseRefAnalysis(test.output)
		if diff := cmp.Diff(test.want, got.Problems); diff != "" {
			t.Errorf("%s: problems:\n%s", name, diff)
		}
		if got.WellFormed {
			t.Errorf("%s is well formed", name)
		}
	}
	if got := actors.ParseRefAnalysis(analysisOf + "## Verdict\nAdopt.\n").Gaps; got != "None that matter.\n## Verdict\nAdopt." {
		t.Errorf("the text of an eighth section is lost: %q", got)
	}
	if got := actors.ParseRefAnalysis(analysisOf + "## Evidence Gaps\nMore.\n").Gaps; got != "None that matter.\nMore." {
		t.Errorf("the text of a repeated section is lost: %q", got)
	}
}

func TestAnAnalysisIsOneJSONObject(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(actors.ParseRefAnalysis(analysisOf))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"overview":"A queue.","mechanisms":"One writer (q.go:3).","adoptable":"- The writer.","pitfalls":"- No limit.",` +
		`"citations":"- q.go:3 — \"go write()\"","coverage":"All of it.","gaps":"None that matter.","wellFormed":true,"problems":[]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func FuzzParseRefAnalysis(f *testing.F) {
	for _, seed := range []string{"", "LGTM", analysisOf, "```md\n" + analysisOf + "```", "**Overview**\r\n# Coverage\n## 1 overview", "## Evidence Citations\n`a b:1`", "\xff## Overview"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, output string) {
		a := actors.ParseRefAnalysis(output)
		if a.WellFormed != (len(a.Problems) == 0) {
			t.Fatalf("well formed %v with problems %q", a.WellFormed, a.Problems)
		}
		for _, section := range []string{a.Overview, a.Mechanisms, a.Adoptable, a.Pitfalls, a.Citations, a.Coverage, a.Gaps} {
			if a.WellFormed && section == "" || strings.TrimSpace(section) != section {
				t.Fatalf("section %q, well formed %v", section, a.WellFormed)
			}
		}
		text, err := json.Marshal(a)
		if err != nil || !utf8.Valid(text) {
			t.Fatalf("no JSON: %v", err)
		}
	})
}
