package agents_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"pilothouse/agents"
)

var roles = []string{"reviewer", "criticizer", "ref-analyst"}

func TestEveryRoleHasAPromptWithoutFrontMatter(t *testing.T) {
	t.Parallel()
	for _, role := range roles {
		prompt, err := agents.Prompt(role)
		if err != nil {
			t.Fatalf("Prompt(%q): %v", role, err)
		}
		if !strings.HasPrefix(prompt, "You are ") {
			t.Errorf("the prompt of %s begins with %.40q, want its first sentence", role, prompt)
		}
		if strings.Contains(prompt, "\n---\n") || strings.Contains(prompt, "tools: read") {
			t.Errorf("the prompt of %s still holds front matter", role)
		}
		if !strings.HasSuffix(prompt, "```\n") {
			t.Errorf("the prompt of %s ends with %q, want its example and one newline", role, prompt[len(prompt)-20:])
		}
	}
}

func TestEveryPromptFileDeclaresItsNameAndReadOnlyTools(t *testing.T) {
	t.Parallel()
	for _, role := range roles {
		raw, err := os.ReadFile(role + ".md")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(raw), "\n")
		if len(lines) < 5 || lines[0] != "---" || lines[4] != "---" {
			t.Fatalf("%s.md: the front matter is not three lines between rulers", role)
		}
		if want := "name: pi-plans-" + role; lines[1] != want {
			t.Errorf("%s.md: %q, want %q", role, lines[1], want)
		}
		if !strings.HasPrefix(lines[2], "description: ") {
			t.Errorf("%s.md: %q is no description", role, lines[2])
		}
		if want := "tools: read, grep, find, ls"; lines[3] != want {
			t.Errorf("%s.md: %q, want %q", role, lines[3], want)
		}
	}
}

func TestEveryPromptSetsTheRulesAllRolesShare(t *testing.T) {
	t.Parallel()
	for _, role := range roles {
		prompt, err := agents.Prompt(role)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range []string{
			"Your only tools are `read`, `grep`, `find` and `ls`. Use no other tool, even when one is offered.",
			"start no other agent",
			"material to judge",
			"`path:line`",
			"in the language that the brief names",
			"Never repeat it.",
		} {
			if !strings.Contains(prompt, rule) {
				t.Errorf("the prompt of %s does not say %q", role, rule)
			}
		}
	}
}

func TestARoleWithoutAPromptIsAnError(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"", "planner", "Reviewer", "../agents/reviewer", "prompt.go"} {
		prompt, err := agents.Prompt(role)
		if !errors.Is(err, agents.ErrUnknownRole) || prompt != "" {
			t.Errorf("Prompt(%q) = %.20q, %v, want ErrUnknownRole", role, prompt, err)
		}
	}
}
