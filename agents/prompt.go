// Package agents holds the role prompts of the subagents: what a reviewer, a
// criticizer and a ref-analyst are told about their work before they get a
// task. The prompts are Markdown files with a front matter, embedded in the
// binary (spec: subagents 4.6).
package agents

import (
	"embed"
	"errors"
	"fmt"
	"strings"
)

//go:embed *.md
var files embed.FS

// ErrUnknownRole reports a role that has no prompt.
var ErrUnknownRole = errors.New("no prompt for this role")

// Prompt returns the system prompt of a role (reviewer, criticizer or
// ref-analyst): the body of its file, without the front matter, with LF line
// ends and one final newline. Another role gives an error that wraps
// ErrUnknownRole.
func Prompt(role string) (string, error) {
	raw, err := files.ReadFile(role + ".md")
	if err != nil {
		return "", fmt.Errorf("load prompt of role %q: %w", role, ErrUnknownRole)
	}
	body, err := body(string(raw))
	if err != nil {
		return "", fmt.Errorf("load prompt of role %q: %w", role, err)
	}
	return body, nil
}

var errOpenFrontMatter = errors.New(`the front matter has no closing "---" line`)

// body strips the front matter. A checkout may have turned the line ends into
// CRLF or CR and an editor may have put a byte order mark in front; neither
// may leave the front matter in the prompt. A file without front matter is
// all body.
func body(raw string) (string, error) {
	text := strings.TrimPrefix(raw, "\uFEFF")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if !isFence(first) {
		return trimBody(text), nil
	}
	for rest != "" {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		if isFence(line) {
			return trimBody(rest), nil
		}
	}
	return "", errOpenFrontMatter
}

func isFence(line string) bool { return strings.TrimRight(line, " \t") == "---" }

func trimBody(text string) string { return strings.Trim(text, "\n") + "\n" }
