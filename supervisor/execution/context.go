package execution

import (
	"fmt"
	"slices"
	"strings"
)

// Graph is whether the workspace wants the code graph used.
type Graph int

// The states of the code graph's setting.
const (
	GraphOff        Graph = iota
	GraphOn               // graph_enabled is true
	GraphUnreadable       // the settings cannot be read
)

func (g Graph) line() string {
	switch g {
	case GraphOn:
		return "The code graph is enabled in this workspace: where the session offers it, read and change indexed files through it."
	case GraphUnreadable:
		return "Notice: the settings of this workspace cannot be read, so the code graph counts as off. Read and edit files directly."
	}
	return "The code graph is off: read and edit files directly."
}

// Brief is what a turn of an execution needs to be told besides the state.
type Brief struct {
	PlanPath string
	Graph    Graph
	// Reverify are checks that had passed on another commit and have to pass again.
	Reverify []string
}

// rules are how an agent carries a plan out (spec: execution 5.3).
const rules = `Rules:
1. Work in layers: first the items that nothing depends on, then those that need them. Do not begin a layer before the one below it works.
2. Mark progress in your messages as described here; unmarked work does not count.
3. When something has to finish first (a build, a test run, a process), write the words "waiting for" and its name, and look again after 5, 10, 20, 40 and 80 seconds, then every 80 seconds. Begin again at 5 seconds for each further process.
4. Choose the simplest implementation that meets the plan.
5. Build for the long term: no stopgaps, and no layers that only keep old forms alive.
6. Prefer libraries that exist to code of your own.
7. Write the fewest tests that prove the behaviour. One that cannot run here gets a skip marker with the reason.
8. Write [DONE:VC-<number>] only after you have verified that check, and give the evidence in the same message.
9. When every check has passed, end with a summary of what was done and how it was verified.`

// Context is what the agent is told before each turn, and when it is woken up: that it
// may write, what is left, how to report, and the rules.
func (s *State) Context(b Brief) string {
	var text strings.Builder
	fmt.Fprintf(&text, "pi-plans: a plan is being executed. Its user has approved it; write access is on.\n\nPlan: %s\nVerified: %d of %d checks.\n",
		b.PlanPath, len(s.done), len(s.plan.Checks))
	remaining := s.Remaining()
	text.WriteString("\nRemaining checks:\n")
	for _, check := range remaining {
		fmt.Fprintf(&text, "- %s\n", check.Text)
	}
	if len(remaining) == 0 {
		text.WriteString("- none\n")
	}
	again := slices.DeleteFunc(slices.Clone(b.Reverify), func(id string) bool { return s.done[id] })
	if len(again) > 0 {
		fmt.Fprintf(&text, "\nThe repository has changed since these passed. Verify them again before anything else: %s.\n", strings.Join(again, ", "))
	}
	s.writeItems(&text)
	fmt.Fprintf(&text, "\n%s\n\n%s\n", b.Graph.line(), rules)
	return text.String()
}

func (s *State) writeItems(text *strings.Builder) {
	if len(s.plan.Items) == 0 {
		return
	}
	text.WriteString("\nImplementation items:\n")
	shown := s.Displays()
	for _, item := range s.plan.Items {
		fmt.Fprintf(text, "- %s (%s): %s\n", item.ID, shown[item.ID], Shorten(item.Text))
	}
	current := s.current
	if current == "" {
		current = "none named yet"
	}
	fmt.Fprintf(text, "Current item: %s\nWrite [I-<number>:current] when you begin an item, [I-<number>:implemented] when its code stands and [I-<number>:validating] while you verify it.\n", current)
}
