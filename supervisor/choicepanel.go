package supervisor

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"
)

// choicePanel is a question with its options, cut so that it fits a screen.
type choicePanel struct {
	title string
	lines []string // one an option, the fixed ones last
	// cramped tells that next to nothing fits; the user should know what is missing.
	cramped bool
}

// What a screen offers a panel (spec: execution 5.6). A screen of unknown size is
// taken for a common one.
const (
	unknownRows, unknownCols = 30, 100

	rowsOutside = 3 // of the screen, below and above the dialog
	rowsOfFrame = 9 // of the dialog, around its text
	colsOfFrame = 6
	leastCols   = 20
	labelRows   = 3
	cut         = ".."
)

// fitChoices cuts a question and its options to a screen. What it gives up, until the
// rest fits: descriptions, then all of a label but one line, then the end of the
// question, then all but 20 columns. The fixed options are short and always whole.
func fitChoices(question string, options []choiceOption, recommended int, fixed []string, rows, cols int) choicePanel {
	if rows <= 0 || cols <= 0 {
		rows, cols = unknownRows, unknownCols
	}
	width := max(leastCols, cols-colsOfFrame)
	room := rows - rowsOutside - rowsOfFrame
	question = oneLine(question)
	for _, form := range []struct {
		described bool
		perLabel  int
	}{{true, labelRows}, {false, labelRows}, {false, 1}} {
		lines := choiceLines(options, recommended, fixed, form.described, width, form.perLabel)
		left := room - rowsOf(lines, width)
		if wrappedRows(question, width) <= left {
			return choicePanel{title: question, lines: lines}
		}
		if form.perLabel == 1 && left >= 1 {
			return choicePanel{title: cutToRows(question, width, left), lines: lines}
		}
	}
	return choicePanel{
		title:   displaywidth.TruncateString(question, leastCols, cut),
		lines:   choiceLines(options, recommended, fixed, false, leastCols, 1),
		cramped: true,
	}
}

func choiceLines(options []choiceOption, recommended int, fixed []string, described bool, width, perLabel int) []string {
	var lines []string
	for i, option := range options {
		line := fmt.Sprintf("%d. %s", i+1, oneLine(option.Label))
		if i == recommended {
			line += "  (recommended)"
		}
		if description := oneLine(option.Description); described && description != "" {
			line += " — " + description
		}
		lines = append(lines, cutToRows(line, width, perLabel))
	}
	return append(lines, fixed...)
}

// oneLine makes one line of a text of the model, without anything that a terminal
// would obey.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// cutToRows cuts a line so that it fills no more than so many rows.
func cutToRows(line string, width, rows int) string {
	shorter := line
	for columns := rows * width; wrappedRows(shorter, width) > rows; columns-- {
		shorter = displaywidth.TruncateString(line, columns, cut)
	}
	return shorter
}

func rowsOf(lines []string, width int) int {
	rows := 0
	for _, line := range lines {
		rows += wrappedRows(line, width)
	}
	return rows
}

// wrappedRows is how many rows a line fills when it is wrapped between words, and
// inside those that are wider than a row. A character is as wide as a terminal shows it.
func wrappedRows(line string, width int) int {
	rows, column := 1, 0
	for _, word := range strings.Split(line, " ") {
		wide := displaywidth.String(word)
		if column > 0 && column+1+wide > width {
			rows, column = rows+1, 0
		} else if column > 0 {
			column++
		}
		if wide <= width {
			column += wide
			continue
		}
		for characters := displaywidth.StringGraphemes(word); characters.Next(); {
			if column+characters.Width() > width {
				rows, column = rows+1, 0
			}
			column += characters.Width()
		}
	}
	return rows
}
