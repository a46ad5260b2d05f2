package main

import (
	"strings"
	"testing"
	"unicode"

	"charm.land/lipgloss/v2"
	"pgregory.net/rapid"
)

func TestTextFromOutsideCannotOrderTheTerminalAbout(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"plain 日本語 é\n\tand on":        "plain 日本語 é\n\tand on",
		"\x1b[31mred\x1b[0m":           "␛[31mred␛[0m",
		"\x1b]0;title\x07":             "␛]0;title␇",
		"a\r\nb\rc":                    "a\nb␍c",
		"\u009b2Jcleared\u0085next":    "\ufffd2Jcleared\ufffdnext",
		"\x00\x7f\b":                   "␀␡␈",
		"abc\u202egpj.exe\u2066\u200f": "abc\ufffdgpj.exe\ufffd\ufffd",
		"one\u2028two\u2029three":      "one\ntwo\nthree",
		"heart \u2764\ufe0f":           "heart \u2764",
	} {
		if got := plainText(given); got != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
	if got := plainLine("a\nb\tc\x1b"); got != "a b c␛" {
		t.Errorf("one line is %q", got)
	}
}

// wild draws texts of what is hard to draw.
func wild() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"日本", "👩\u200d👩\u200d👧", "e\u0301", "\x1b[31m", "\t", "\n", " ", "\r\n", "\u202e", "word", "a-long-word-that-fits-nowhere", "🇩🇪", "\ufe0f", "한국어",
	}))
	return rapid.Map(rapid.SliceOfN(piece, 0, 12), func(pieces []string) string { return strings.Join(pieces, "") })
}

func TestWhateverTheTextLinesHaveTheirWidth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, width := plainText(wild().Draw(t, "text")), rapid.IntRange(2, 40).Draw(t, "width")
		for _, r := range text {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
				t.Fatalf("%q still has %q", text, r)
			}
		}
		for _, line := range wrapLines(text, width) {
			if got := lipgloss.Width(line); got > width {
				t.Fatalf("line %q is %d wide, want at most %d", line, got, width)
			}
		}
		for name, line := range map[string]string{"left": fit(plainLine(text), width), "right": fitRight(plainLine(text), width)} {
			if got := lipgloss.Width(line); got != width {
				t.Fatalf("%s %q is %d wide, want %d", name, line, got, width)
			}
		}
	})
}

func TestWrappingLosesNoWord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, width := plainText(wild().Draw(t, "text")), rapid.IntRange(2, 40).Draw(t, "width")
		squeeze := func(s string) string {
			return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }), "")
		}
		if got := squeeze(strings.Join(wrapLines(text, width), "\n")); got != squeeze(text) {
			t.Fatalf("%q came as %q", text, got)
		}
	})
}
