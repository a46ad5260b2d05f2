package supervisor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"pgregory.net/rapid"
)

func someOptions(n int, label, description string) []choiceOption {
	options := make([]choiceOption, n)
	for i := range options {
		options[i] = choiceOption{Label: label, Description: description}
	}
	return options
}

func TestAQuestionThatFitsIsShownWhole(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{30, 100}, {0, 0}, {-1, 80}, {60, 0}} {
		p := fitChoices("Which\none?\r\n ", []choiceOption{{Label: "first\none", Description: "a\tb"}, {Label: "second"}}, 1, []string{fixedOther, fixedAutoComplete}, size[0], size[1])
		want := "1. first one — a b|2. second  (recommended)|Other…|Auto-complete"
		if got := strings.Join(p.lines, "|"); p.title != "Which one?" || got != want || p.cramped {
			t.Errorf("%v: %q %q", size, p.title, got)
		}
	}
}

func TestTextOfAModelCannotDriveTheTerminal(t *testing.T) {
	t.Parallel()
	if got := oneLine("a\x1b[2Jb\x07\u009bc\u2028d\u00a0e"); got != "a[2Jbc d e" {
		t.Errorf("got %q", got)
	}
}

func TestALabelFillsThreeRowsAtMostWhateverItsCharacters(t *testing.T) {
	t.Parallel()
	for name, label := range map[string]string{"latin": strings.Repeat("word ", 80), "one word": strings.Repeat("x", 400), "wide": strings.Repeat("漢字", 100), "emoji": strings.Repeat("👩‍👩‍👧 ", 80)} {
		p := fitChoices("?", someOptions(1, label, ""), 0, nil, 40, 60)
		line := p.lines[0]
		if got := wrappedRows(line, 54); got != 3 || !strings.HasSuffix(line, cut) || !strings.HasPrefix(line, "1. ") || displaywidth.String(line) < 2*54 {
			t.Errorf("%s: %d rows, %q", name, got, line)
		}
	}
}

func TestWhatIsGivenUpFirst(t *testing.T) {
	t.Parallel()
	label, description := strings.Repeat("label ", 12), strings.Repeat("description ", 10)
	question := strings.Repeat("question ", 20)
	options := someOptions(3, label, description)
	fixed := []string{fixedOther, fixedAutoComplete}
	for rows, want := range map[int]struct{ described, whole, asked, cramped bool }{
		40: {true, true, true, false},    // all of it
		25: {false, true, true, false},   // without descriptions
		22: {false, false, true, false},  // one row a label
		19: {false, false, false, false}, // the question cut
		16: {false, false, false, true},  // next to nothing
	} {
		p := fitChoices(question, options, 0, fixed, rows, 60)
		described := strings.Contains(p.lines[1], "description")
		whole := strings.Contains(p.lines[1], strings.TrimSpace(label))
		asked := p.title == strings.TrimSpace(question)
		if described != want.described || whole != want.whole || asked != want.asked || p.cramped != want.cramped {
			t.Errorf("%d rows: described %v, whole %v, asked %v, cramped %v", rows, described, whole, asked, p.cramped)
		}
		if !p.cramped && wrappedRows(p.title, 54)+rowsOf(p.lines, 54) > rows-rowsOutside-rowsOfFrame {
			t.Errorf("%d rows: it does not fit", rows)
		}
	}
}

func TestNumbersAndFixedOptionsSurviveTheNarrowestScreen(t *testing.T) {
	t.Parallel()
	for _, loop := range []string{fixedAutoComplete, fixedLoop} {
		p := fitChoices(strings.Repeat("漢", 100), someOptions(12, strings.Repeat("漢", 40), "d"), 3, []string{fixedOther, loop}, 10, 26)
		if !p.cramped || displaywidth.String(p.title) > 20 || len(p.lines) != 14 {
			t.Errorf("got %+v", p)
		}
		for i, line := range p.lines[:12] {
			if !strings.HasPrefix(line, fmt.Sprintf("%d. 漢", i+1)) || displaywidth.String(line) > 20 || displaywidth.String(line) < 18 {
				t.Errorf("line %d is %q", i+1, line)
			}
		}
		if p.lines[12] != fixedOther || p.lines[13] != loop {
			t.Errorf("the fixed options are %q", p.lines[12:])
		}
	}
}

// On any screen: as many lines as options, each with its number, none with the end of a
// line, and all within the screen unless that is told.
func TestAPanelFitsAnyScreen(t *testing.T) {
	t.Parallel()
	text := rapid.StringOf(rapid.SampledFrom([]rune("ab 漢字é👍🏽\n\t\x1b—…")))
	rapid.Check(t, func(t *rapid.T) {
		var options []choiceOption
		for range rapid.IntRange(1, 12).Draw(t, "options") {
			options = append(options, choiceOption{Label: "l" + text.Draw(t, "label"), Description: text.Draw(t, "description")})
		}
		rows, cols := rapid.IntRange(1, 60).Draw(t, "rows"), rapid.IntRange(1, 140).Draw(t, "cols")
		p := fitChoices(text.Draw(t, "question"), options, 0, []string{fixedOther}, rows, cols)
		width := max(leastCols, cols-colsOfFrame)
		if len(p.lines) != len(options)+1 {
			t.Fatalf("%d lines", len(p.lines))
		}
		for i, line := range p.lines[:len(options)] {
			if !strings.HasPrefix(line, fmt.Sprintf("%d. ", i+1)) || strings.ContainsAny(line, "\n\t\x1b") {
				t.Fatalf("line %q", line)
			}
		}
		if !p.cramped && wrappedRows(p.title, width)+rowsOf(p.lines, width) > rows-rowsOutside-rowsOfFrame {
			t.Fatalf("%q %q does not fit %d×%d", p.title, p.lines, rows, cols)
		}
	})
}

func TestOnlyThePersonDecidesWhatLeavesTheWorkspace(t *testing.T) {
	t.Parallel()
	choice := func(purpose, question, label string) choiceParams {
		return choiceParams{Purpose: purpose, Question: question, Options: []choiceOption{{Label: label}}}
	}
	for _, p := range []choiceParams{
		choice("execution", "Go on?", "yes"), choice("", "Accept the plan and execute it?", "yes"), choice("", "What now?", "Accept & Execute"),
		choice("install", "Go on?", "yes"), choice("", "May I install the dependency?", "yes"), choice("", "Publish v2?", "yes"),
		choice("deployment", "", ""), choice("", "Deploying to staging?", "yes"), choice("", "Shall the branch be merged?", "yes"),
		choice("", "Next?", "git push origin main"), choice("", "Which credentials?", "the stored ones"), choice("", "The password?", "ask"),
		choice("", "Which API key is used?", "mine"), choice("", "现在执行计划吗？", "是"), choice("", "合併分支？", "是"),
	} {
		if p.automatic() {
			t.Errorf("%+v would answer itself", p)
		}
	}
	for _, p := range []choiceParams{
		choice("design", "Which parser?", "recursive descent"), choice("", "Does the error emerge early?", "yes"), choice("scope", "Which language for the docs?", "en"),
	} {
		if !p.automatic() {
			t.Errorf("%+v has to be asked", p)
		}
	}
	no := false
	asked := choice("design", "Which parser?", "a")
	asked.AutoComplete = &no
	trailing := choice("design", "Which parser?", "a")
	trailing.Trailing = trailingLoop
	termination := choice("design", "How long?", "3 rounds")
	termination.QuestionID = "termination-condition"
	if asked.automatic() || trailing.automatic() || termination.automatic() {
		t.Error("a question that wants to be asked answers itself")
	}
}
