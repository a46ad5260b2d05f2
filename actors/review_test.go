package actors_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
)

// reviewOf is a well-formed review with one finding.
const reviewOf = `## Findings

### F-001 · high · The lock is taken twice
- Affects: I-001, VC-002
- Evidence: src/lock.go:12 — "mu.Lock()"
- Impact: The second call hangs.
- Fix: Release it first.
- Disposition: accept

## Checked
- Callers of Lock in src/
`

func wantLockFinding() actors.Finding {
	return actors.Finding{
		ID: "F-001", Severity: "high", Title: "The lock is taken twice", Affects: []string{"I-001", "VC-002"},
		Evidence: []actors.Evidence{{Path: "src/lock.go", Line: 12, Quote: "mu.Lock()", Raw: `src/lock.go:12 — "mu.Lock()"`}},
		Impact:   "The second call hangs.", Fix: "Release it first.", Disposition: "accept",
	}
}

func TestAReviewIsReadInItsUsualSpellings(t *testing.T) {
	t.Parallel()
	replace := func(pairs ...string) string {
		out := strings.NewReplacer(pairs...).Replace(reviewOf)
		if out == reviewOf {
			panic("nothing replaced by " + pairs[0])
		}
		return out
	}
	for name, output := range map[string]string{
		"as the prompt sets it":    reviewOf,
		"CRLF":                     strings.ReplaceAll(reviewOf, "\n", "\r\n"),
		"CR":                       strings.ReplaceAll(reviewOf, "\n", "\r"),
		"byte order mark":          "\uFEFF" + reviewOf,
		"no final newline":         strings.TrimRight(reviewOf, "\n"),
		"markdown fence":           "```markdown\n" + reviewOf + "```",
		"md fence, blank lines":    "\n\n~~~md\n" + reviewOf + "~~~\n\n",
		"plain fence, CRLF":        strings.ReplaceAll("```\n"+reviewOf+"```\n", "\n", "\r\n"),
		"longer fence":             "````markdown\n" + reviewOf + "````\n",
		"prose before":             "I read the plan and these files.\n\n" + reviewOf,
		"prose between":            replace("## Findings\n", "## Findings\n\nOne thing matters.\n"),
		"no blank lines":           strings.ReplaceAll(reviewOf, "\n\n", "\n"),
		"stars":                    strings.ReplaceAll(reviewOf, "\n- ", "\n* "),
		"indented bullets":         strings.ReplaceAll(reviewOf, "\n- ", "\n  - "),
		"no bullets":               replace("- Affects", "Affects", "- Evidence", "Evidence", "- Impact", "Impact", "- Fix", "Fix", "- Disposition", "Disposition"),
		"numbered fields":          replace("- Affects", "1. Affects", "- Evidence", "2. Evidence", "- Impact", "3) Impact"),
		"bold labels":              replace("Affects:", "**Affects:**", "Evidence:", "**Evidence**:", "Impact:", "__Impact:__", "Fix:", "*Fix:*"),
		"dashes for colons":        replace("Affects:", "Affects —", "Impact:", "Impact –", "Fix:", "**Fix** -"),
		"full-width colons":        replace("Affects:", "Affects：", "Impact: ", "Impact："),
		"labels in capitals":       replace("Affects", "AFFECTS", "Evidence", "EVIDENCE", "Disposition", "disposition"),
		"long labels":              replace("Affects", "Affected plan ids", "Fix", "Recommended fix", "Disposition", "Suggested disposition"),
		"labels as headings":       replace("- Evidence: ", "#### Evidence\n", "- Impact: ", "#### Impact:\n\n"),
		"short id":                 replace("### F-001", "## F-1"),
		"long id":                  replace("### F-001", "### F-0001"),
		"heading of level one":     replace("### F-001", "# F-001"),
		"closed heading":           replace("twice", "twice ###"),
		"bold heading text":        replace("### F-001 · high · The lock is taken twice", "### **F-001 · high · The lock is taken twice**"),
		"bold line as heading":     replace("### F-001 · high · The lock is taken twice", "**F-001 · high · The lock is taken twice**"),
		"bold id as heading":       replace("### F-001 · high · The lock is taken twice", "**F-001** (high): The lock is taken twice"),
		"capital severity":         replace("· high ·", "· HIGH ·"),
		"severity in brackets":     replace("F-001 · high · ", "F-001 [High] "),
		"severity in parentheses":  replace("F-001 · high · ", "F-001 (high): "),
		"severity first":           replace("F-001 · high · ", "[high] F-001: "),
		"severity last":            replace("· high · The lock is taken twice", "— The lock is taken twice (high)"),
		"severity after dashes":    replace("F-001 · high · ", "F-001 — High — "),
		"severity after hyphens":   replace("F-001 · high · ", "F-001 - high - "),
		"severity after colons":    replace("F-001 · high · ", "F-001: high: "),
		"severity with its word":   replace("F-001 · high · ", "F-001 · Severity: high · "),
		"severity with a dot":      replace("F-001 · high · ", "F-001 · 🔴 high · "),
		"severity as a field":      replace("F-001 · high · ", "F-001: ", "- Affects", "- **Severity:** High\n- Affects"),
		"soft hyphen kin in id":    replace("F-001", "F\u2011001", "I-001", "I\u2011001"),
		"no title of the section":  replace("## Findings\n", ""),
		"Checked as a bold label":  replace("## Checked", "**Checked:**"),
		"Checked with a longer":    replace("## Checked", "## What was checked"),
		"a rule between":           replace("\n## Checked", "\n---\n\n## Checked"),
		"ids in backticks":         replace("I-001, VC-002", "`I-001`; `VC-002` (and `I-001` again)"),
		"disposition with reason":  replace("Disposition: accept", "Disposition: **Accept** — it is cheap\n\nOverall a good plan."),
		"disposition in the past":  replace("Disposition: accept", "Disposition: accepted"),
		"fields in another order":  replace("- Affects: I-001, VC-002\n", "", "- Disposition: accept\n", "- Disposition: accept\n- Affects: I-001, VC-002\n"),
		"bold remark in a finding": replace("- Disposition", "**Important**\n- Disposition", "- Fix: Release it first.\n", "", "- Impact", "- Fix: Release it first.\n- Impact", "hangs.\n", "hangs.\n---\n"),
	} {
		got := actors.ParseReview(output)
		want := actors.Review{Findings: []actors.Finding{wantLockFinding()}, Checked: []string{"Callers of Lock in src/"}, WellFormed: true, Problems: []string{}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestEvidenceIsReadAsPlacesAndQuotes(t *testing.T) {
	t.Parallel()
	type place struct {
		Path  string
		Line  int
		Quote string
	}
	for name, test := range map[string]struct {
		evidence string // follows "- Evidence:"
		want     []place
	}{
		"dash":                        {` a/b.go:7 - "x := 1"`, []place{{"a/b.go", 7, "x := 1"}}},
		"no separator":                {` a/b.go:7 "x"`, []place{{"a/b.go", 7, "x"}}},
		"colon":                       {` a/b.go:7: "x"`, []place{{"a/b.go", 7, "x"}}},
		"backticks":                   {" `a/b.go:7` — `x := 1`", []place{{"a/b.go", 7, "x := 1"}}},
		"backticks around the path":   {" `a/b.go`:7 — “x”", []place{{"a/b.go", 7, "x"}}},
		"double backticks":            {" a/b.go:7 — ``a ` b``", []place{{"a/b.go", 7, "a ` b"}}},
		"bold":                        {` **a/b.go:7** — "x"`, []place{{"a/b.go", 7, "x"}}},
		"range":                       {` a/b.go:7-9 — "x"`, []place{{"a/b.go", 7, "x"}}},
		"column":                      {` a/b.go:7:3 — "x"`, []place{{"a/b.go", 7, "x"}}},
		"anchor":                      {` a/b.go#L7-L9 — "x"`, []place{{"a/b.go", 7, "x"}}},
		"line in words":               {` a/b.go, line 7: "x"`, []place{{"a/b.go", 7, "x"}}},
		"lines in parentheses":        {` a/b.go (lines 7–9) "x"`, []place{{"a/b.go", 7, "x"}}},
		"line after backticks":        {" `a/b.go` line 7: \"x\"", []place{{"a/b.go", 7, "x"}}},
		"link":                        {` [a/b.go:7](a/b.go#L7) — "x"`, []place{{"a/b.go", 7, "x"}}},
		"parentheses":                 {` the lock ("x") is taken (a/b.go:7)`, []place{{"a/b.go", 7, "x"}}},
		"in a sentence":               {` In a/b.go:7 it says "x", which is wrong`, []place{{"a/b.go", 7, "x"}}},
		"quote first":                 {` "x" — a/b.go:7; "y" — c.go:8`, []place{{"a/b.go", 7, "x"}, {"c.go", 8, "y"}}},
		"two in a line":               {` a/b.go:7 — "x"; c.go:8 — "y"`, []place{{"a/b.go", 7, "x"}, {"c.go", 8, "y"}}},
		"two places, one quote":       {` a/b.go:7, c.go:8 — "y"`, []place{{"a/b.go", 7, ""}, {"c.go", 8, "y"}}},
		"quotes in the quote":         {` a/b.go:7 — "fmt.Println("hi")"`, []place{{"a/b.go", 7, `fmt.Println("hi")`}}},
		"a place in the quote":        {` a/b.go:7 — "see c/d.go:9 for more"`, []place{{"a/b.go", 7, "see c/d.go:9 for more"}}},
		"an open quote":               {` a/b.go:7 — "x and so`, []place{{"a/b.go", 7, "x and so"}}},
		"other quotation marks":       {` a/b.go:7 — «x»; c.go:8 — „y“; d.go:9 — 「z」`, []place{{"a/b.go", 7, "x"}, {"c.go", 8, "y"}, {"d.go", 9, "z"}}},
		"code that looks like a path": {" a/b.go:7 — `cfg.Load`", []place{{"a/b.go", 7, "cfg.Load"}}},
		"no quote":                    {` a/b.go:7`, []place{{"a/b.go", 7, ""}}},
		"no line but a quote":         {` a/b.go — "x"`, []place{{"a/b.go", 0, "x"}}},
		"a plain name":                {` Makefile:7 — "x"`, []place{{"Makefile", 7, "x"}}},
		"a hidden file":               {` .github/ci.yml:7 — "x"`, []place{{".github/ci.yml", 7, "x"}}},
		"underscores":                 {` a/__init__.py:7 — "x"`, []place{{"a/__init__.py", 7, "x"}}},
		"brackets in the path":        {` app/(main)/[id]/page.tsx:7 — "x"`, []place{{"app/(main)/[id]/page.tsx", 7, "x"}}},
		"blanks in the path":          {" `my docs/a b.md:7` — \"x\"", []place{{"my docs/a b.md", 7, "x"}}},
		"other scripts":               {` 文档/计划.md:7 — “你好”`, []place{{"文档/计划.md", 7, "你好"}}},
		"absence":                     {` internal/ — no match for "Retry"`, []place{{"internal/", 0, ""}}},
		"an absurd line":              {` a/b.go:99999999999999999999 — "x"`, []place{{"a/b.go", 0, "x"}}},
		"an address is no place":      {` a/b.go:7 — listens on http://localhost:8080/x and 10:30`, []place{{"a/b.go", 7, ""}}},
		"a plan id is no place":       {` a/b.go:7 contradicts I-003: and VC-001:2`, []place{{"a/b.go", 7, ""}}},
		"bullets below":               {"\n  - a/b.go:7 — \"x\"\n  - `c.go:8`: `y`\n", []place{{"a/b.go", 7, "x"}, {"c.go", 8, "y"}}},
		"bullets at the margin":       {"\n- a/b.go:7 — \"x\"\n- c.go:8 — \"y\"", []place{{"a/b.go", 7, "x"}, {"c.go", 8, "y"}}},
		"numbered below":              {"\n  1. a/b.go:7 — \"x\"\n  2. c.go:8 — \"y\"", []place{{"a/b.go", 7, "x"}, {"c.go", 8, "y"}}},
		"lines without bullets":       {" a/b.go:7 — \"x\"\n  c.go:8 — \"y\"", []place{{"a/b.go", 7, "x"}, {"c.go", 8, "y"}}},
		"quote on the next line":      {" a/b.go:7\n  \"x\"", []place{{"a/b.go", 7, "x"}}},
		"block quote":                 {" a/b.go:7\n  > x := 1", []place{{"a/b.go", 7, "x := 1"}}},
		"code block":                  {" a/b.go:7\n  ```go\n  x := 1\n  ### F-009 · high · not a finding\n  ```\n", []place{{"a/b.go", 7, "x := 1\n  ### F-009 · high · not a finding"}}},
		"prose on the next line":      {" a/b.go:7 — \"x\"\n  which nobody reads", []place{{"a/b.go", 7, "x"}}},
		"prose bullet":                {"\n  - a/b.go:7 — \"x\"\n  - nobody reads it", []place{{"a/b.go", 7, "x"}, {"", 0, ""}}},
	} {
		output := strings.Replace(reviewOf, ` src/lock.go:12 — "mu.Lock()"`, test.evidence, 1)
		review := actors.ParseReview(output)
		if len(review.Findings) != 1 || !review.WellFormed {
			t.Errorf("%s: %d findings, problems %q", name, len(review.Findings), review.Problems)
			continue
		}
		var got []place
		for _, e := range review.Findings[0].Evidence {
			got = append(got, place{e.Path, e.Line, e.Quote})
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestAReviewThatBreaksTheContractSaysWhatIsOff(t *testing.T) {
	t.Parallel()
	without := func(label string) string {
		var kept []string
		for line := range strings.Lines(reviewOf) {
			if !strings.HasPrefix(line, "- "+label) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	head, _, _ := strings.Cut(reviewOf, "- Impact")
	high := func(n int) string {
		one, tail, _ := strings.Cut(strings.TrimPrefix(reviewOf, "## Findings\n\n"), "## Checked")
		var out strings.Builder
		for i := range n {
			out.WriteString(strings.Replace(one, "F-001", fmt.Sprintf("F-%03d", i+1), 1))
		}
		return out.String() + "## Checked" + tail
	}
	for name, test := range map[string]struct {
		output   string
		findings int
		want     []string
	}{
		"nothing":               {"", 0, []string{`the answer has no finding that could be read and does not say "No findings."`}},
		"blank":                 {" \r\n\t\n", 0, []string{`the answer has no finding that could be read and does not say "No findings."`}},
		"LGTM":                  {"LGTM", 0, []string{`the answer has no finding that could be read and does not say "No findings."`}},
		"approval in prose":     {"## Findings\nThe plan looks good to me.\n## Checked\n- all of it\n", 0, []string{`the answer has no finding that could be read and does not say "No findings."`}},
		"half JSON":             {`{"findings":[{"id":"F-001","severity":"high","ti`, 0, []string{`the answer has no finding that could be read and does not say "No findings."`}},
		"a quoted review":       {"Here is mine:\n```markdown\n" + reviewOf + "```\n", 0, []string{`the answer has no finding that could be read and does not say "No findings."`}},
		"a block quote":         {"> ### F-001 · high · x\n> No findings.\n", 0, []string{`the answer has no finding that could be read and does not say "No findings."`}},
		"ids in prose":          {"**F-001** overlaps with F-002.\nF-003 · high · not a heading\n", 0, []string{`the answer has no finding that could be read and does not say "No findings."`}},
		"cut off in a fence":    {"```markdown\n" + reviewOf, 0, []string{"a code block is never closed, so the answer may be cut off", `the answer has no finding that could be read and does not say "No findings."`}},
		"cut off in a finding":  {head, 1, []string{"F-001: Impact is missing", "F-001: Fix is missing", "F-001: Disposition is missing"}},
		"holds, nothing said":   {"No findings.", 0, []string{`the answer says "No findings." and does not list what was checked`}},
		"holds, empty list":     {"## Findings\nNo findings.\n## Checked\n- \n- none\n", 0, []string{`the answer says "No findings." and does not list what was checked`}},
		"holds and does not":    {"No findings.\n" + reviewOf, 1, []string{`the answer says "No findings." and lists findings`}},
		"no evidence":           {without("Evidence"), 1, []string{"F-001: Evidence is missing"}},
		"empty evidence":        {strings.Replace(reviewOf, ` src/lock.go:12 — "mu.Lock()"`, "", 1), 1, []string{"F-001: Evidence is missing"}},
		"evidence without file": {strings.Replace(reviewOf, `src/lock.go:12 — "mu.Lock()"`, "common sense, e.g. and/or", 1), 1, []string{"F-001: Evidence names no file"}},
		"a bare file":           {strings.Replace(reviewOf, `src/lock.go:12 — "mu.Lock()"`, "src/lock.go", 1), 1, []string{`F-001: Evidence names "src/lock.go" without a line or a quote`}},
		"no plan id":            {without("Affects"), 1, []string{"F-001: Affects names no plan id"}},
		"no impact":             {without("Impact"), 1, []string{"F-001: Impact is missing"}},
		"no fix":                {without("Fix"), 1, []string{"F-001: Fix is missing"}},
		"no disposition":        {without("Disposition"), 1, []string{"F-001: Disposition is missing"}},
		"own disposition":       {strings.Replace(reviewOf, "Disposition: accept", "Disposition: acceptable", 1), 1, []string{`F-001: Disposition "acceptable" is none of accept, reject and needs-discussion`}},
		"own severity":          {strings.Replace(reviewOf, "· high ·", "· critical ·", 1), 1, []string{"F-001: the severity is none of high, medium and low"}},
		"severity in a title":   {strings.Replace(reviewOf, "· high ·", "· High load:", 1), 1, []string{"F-001: the severity is none of high, medium and low"}},
		"no title":              {strings.Replace(reviewOf, "· high · The lock is taken twice", "· high", 1), 1, []string{"F-001: the title is missing"}},
		"five high":             {high(5), 5, []string{}},
		"six high":              {high(6), 6, []string{"6 findings are high, at most 5 may be"}},
		"the same id":           {reviewOf + reviewOf + reviewOf, 3, []string{"F-001: the id is used by more than one finding"}},
		"the same id, short":    {reviewOf + strings.Replace(reviewOf, "F-001", "F-1", 1), 2, []string{"F-001: the id is used by more than one finding"}},
	} {
		got := actors.ParseReview(test.output)
		if diff := cmp.Diff(test.want, got.Problems); diff != "" {
			t.Errorf("%s: problems:\n%s", name, diff)
		}
		if len(got.Findings) != test.findings {
			t.Errorf("%s: %d findings, want %d", name, len(got.Findings), test.findings)
		}
		if got.WellFormed != (len(test.want) == 0) || got.Holds {
			t.Errorf("%s: well formed %v, holds %v", name, got.WellFormed, got.Holds)
		}
	}
}

func TestAPlanHoldsOnlyWhenTheAnswerSaysSoAndWhatWasChecked(t *testing.T) {
	t.Parallel()
	for name, output := range map[string]string{
		"as the prompt sets it": "## Findings\nNo findings.\n\n## Checked\n- a\n- b\n",
		"bold and a bullet":     "## Findings\n- **No findings.**\n## Checked\n* a\n* b\n",
		"with a reason":         "No findings: the plan holds.\n\n**Checked:**\n- a\n- b",
		"as a heading":          "## No findings\n\n### Checked:\n1. a\n2. b\n",
		"fenced":                "```md\n## Findings\n\nno findings\n\n## Checked\n- a\n- b\n```\n",
		"lines without bullets": "## Findings\nNo findings.\n## Checked\na\nb\n",
		"label with a value":    "No findings.\nChecked: a\n- b",
	} {
		got := actors.ParseReview(output)
		want := actors.Review{Findings: []actors.Finding{}, Checked: []string{"a", "b"}, Holds: true, WellFormed: true, Problems: []string{}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	for _, output := range []string{
		"No findings above medium.\n## Checked\n- a", "There are no findings.\n## Checked\n- a",
		"```\nNo findings.\n```\nfoo\n## Checked\n- a", "- no findingsx\n## Checked\n- a",
	} {
		if actors.ParseReview(output).Holds {
			t.Errorf("%q holds", output)
		}
	}
}

func TestFieldsKeepTheirLinesAndOtherLanguagesTheirText(t *testing.T) {
	t.Parallel()
	output := "## Findings\n\n### F-002 · low · 两次加锁：会挂起\n- Affects: plan\n- Evidence: src/锁.go:3 — “锁定”\n" +
		"- Impact: 第二次调用会挂起。\n  每个用户都会遇到。\n- Fix: 两步：\n  - 先释放\n    - 再检查\n  ```go\n  mu.Unlock()\n  ```\n- Disposition: needs discussion\n\n## Checked\n- 全部\n  调用者\n"
	want := actors.Review{
		Findings: []actors.Finding{{
			ID: "F-002", Severity: "low", Title: "两次加锁：会挂起", Affects: []string{"plan"},
			Evidence:    []actors.Evidence{{Path: "src/锁.go", Line: 3, Quote: "锁定", Raw: "src/锁.go:3 — “锁定”"}},
			Impact:      "第二次调用会挂起。\n每个用户都会遇到。",
			Fix:         "两步：\n- 先释放\n  - 再检查\n```go\nmu.Unlock()\n```",
			Disposition: "needs-discussion",
		}},
		Checked: []string{"全部 调用者"}, WellFormed: true, Problems: []string{},
	}
	if diff := cmp.Diff(want, actors.ParseReview(output)); diff != "" {
		t.Error(diff)
	}
}

func TestPlanIdsOfEveryKindAreAffected(t *testing.T) {
	t.Parallel()
	output := strings.Replace(reviewOf, "I-001, VC-002", "G-1, NG-2; E-REPO-003 and E-EXT-4, STATE-5, Risk-6, AC-7, V-8, Task-1.2", 1)
	want := []string{"G-1", "NG-2", "E-REPO-003", "E-EXT-4", "STATE-5", "Risk-6", "AC-7", "V-8", "Task-1.2"}
	if diff := cmp.Diff(want, actors.ParseReview(output).Findings[0].Affects); diff != "" {
		t.Error(diff)
	}
}

func TestAReviewIsOneJSONObjectWithoutNulls(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(actors.ParseReview("### F-1 · low · t\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"findings":[{"id":"F-001","severity":"low","title":"t","affects":[],"evidence":[],"impact":"","fix":"","disposition":""}],` +
		`"checked":[],"holds":false,"wellFormed":false,"problems":["F-001: Affects names no plan id","F-001: Evidence is missing",` +
		`"F-001: Impact is missing","F-001: Fix is missing","F-001: Disposition is missing"]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func FuzzParseReview(f *testing.F) {
	for _, seed := range []string{
		"", "LGTM", reviewOf, reviewOf + reviewOf, "```markdown\n" + reviewOf + "```", "\uFEFF## Findings\r\nNo findings.\r\n## Checked\r\n* a",
		"## F-1:\n**Evidence**\n```\n", "- Evidence: `a b.go:1` “x” \"y", "**F-001** [HIGH] — t\nEvidence：a#L1", `{"findings":[`, "### F-99999999999999999999 (low)\n> x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, output string) {
		r := actors.ParseReview(output)
		if r.WellFormed != (len(r.Problems) == 0) {
			t.Fatalf("well formed %v with problems %q", r.WellFormed, r.Problems)
		}
		if r.Holds && (!r.WellFormed || len(r.Findings) > 0 || len(r.Checked) == 0) {
			t.Fatalf("holds with %+v", r)
		}
		if r.WellFormed && !r.Holds && len(r.Findings) == 0 {
			t.Fatal("well formed without a finding")
		}
		ids := map[string]bool{}
		for _, finding := range r.Findings {
			if ids[finding.ID] && !slices.Contains(r.Problems, finding.ID+": the id is used by more than one finding") {
				t.Fatalf("the id %s is used twice and not reported: %q", finding.ID, r.Problems)
			}
			ids[finding.ID] = true
			if r.WellFormed {
				checkFinding(t, finding)
			}
		}
		text, err := json.Marshal(r)
		if err != nil || !utf8.Valid(text) {
			t.Fatalf("no JSON: %v", err)
		}
	})
}

// checkFinding checks what a well-formed review promises of each finding.
func checkFinding(t *testing.T, f actors.Finding) {
	t.Helper()
	if !slices.Contains([]string{"high", "medium", "low"}, f.Severity) || !slices.Contains([]string{"accept", "reject", "needs-discussion"}, f.Disposition) {
		t.Fatalf("severity %q, disposition %q", f.Severity, f.Disposition)
	}
	if f.Title == "" || f.Impact == "" || f.Fix == "" || len(f.Affects) == 0 || len(f.Evidence) == 0 {
		t.Fatalf("a part is missing: %+v", f)
	}
	if !slices.ContainsFunc(f.Evidence, func(e actors.Evidence) bool { return e.Path != "" }) {
		t.Fatalf("no evidence names a file: %+v", f.Evidence)
	}
	for _, e := range f.Evidence {
		if e.Line < 0 || strings.ContainsAny(e.Path, "\n\"") {
			t.Fatalf("evidence %+v", e)
		}
	}
}
