package agents

import (
	"errors"
	"testing"
)

func TestFrontMatterIsStrippedWhateverTheCheckoutDidToTheFile(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"LF":                    "---\nname: a\n---\n\nBody\n\n---\nmore\n",
		"CRLF":                  "---\r\nname: a\r\n---\r\n\r\nBody\r\n\r\n---\r\nmore\r\n",
		"CR":                    "---\rname: a\r---\r\rBody\r\r---\rmore\r",
		"byte order mark":       "\uFEFF---\nname: a\n---\nBody\n\n---\nmore",
		"mark and CRLF":         "\uFEFF---\r\nname: a\r\n---\r\nBody\r\n\r\n---\r\nmore",
		"blanks after rulers":   "---  \nname: a\n---\t\nBody\n\n---\nmore\n\n",
		"no front matter":       "Body\n\n---\nmore",
		"empty front matter":    "---\n---\nBody\n\n---\nmore\n",
		"ruler inside a value":  "---\nname: a --- b\n----\n---\nBody\n\n---\nmore\n",
		"leading empty line":    "\nBody\n\n---\nmore\n",
		"mark, no front matter": "\uFEFFBody\n\n---\nmore\n",
	} {
		got, err := body(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := "Body\n\n---\nmore\n"; got != want {
			t.Errorf("%s: body is %q, want %q", name, got, want)
		}
	}
}

func TestFrontMatterWithoutAnEndIsAnError(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"---\nname: a\nBody\n", "---", "---\r\n", "---\n --- \nBody"} {
		if got, err := body(raw); !errors.Is(err, errOpenFrontMatter) || got != "" {
			t.Errorf("body(%q) = %q, %v, want an error", raw, got, err)
		}
	}
}
