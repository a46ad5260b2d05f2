package guard

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Decision is the outcome of a verdict.
type Decision string

// The two decisions. There is no third: what cannot be judged is blocked.
const (
	Allow Decision = "allow"
	Block Decision = "block"
)

// Verdict is the judgement of one tool call.
type Verdict struct {
	Decision Decision `json:"verdict"`
	// Reason is one sentence for the model and the person: what is blocked, why, and
	// what to do instead.
	Reason string `json:"reason"`
	// Segments are the commands of a shell command, in the order they are written;
	// empty for a tool that runs none.
	Segments []Segment `json:"segments"`
}

// Allowed tells whether the call may be made.
func (v Verdict) Allowed() bool { return v.Decision == Allow }

// Segment is one command of a list, pipe, group, loop, wrapper or substitution.
type Segment struct {
	// Text is the source of the segment, shortened if it is long.
	Text     string   `json:"text"`
	Decision Decision `json:"verdict"`
	Reason   string   `json:"reason"`
}

// objection is why something is blocked and, where there is one, the better way.
type objection struct{ why, instead string }

func object(format string, args ...any) *objection {
	return &objection{why: fmt.Sprintf(format, args...)}
}

func (o *objection) or(instead string) *objection {
	return &objection{why: o.why, instead: instead}
}

func (o *objection) String() string {
	if o.instead == "" {
		return o.why
	}
	return o.why + "; " + o.instead
}

// waysOut ends every blocking reason, unless the policy names others (spec: plan mode,
// tool gate).
const waysOut = "Plan mode only reads: inspect with other commands, and propose the change with exit_plan_mode, or ask the user to leave with /plan off."

func (p Policy) blocked(what string, o *objection, segments []Segment) Verdict {
	return Verdict{
		Decision: Block,
		Reason:   fmt.Sprintf("Blocked `%s`: %s. %s", what, o, p.waysOut()),
		Segments: segments,
	}
}

func (p Policy) waysOut() string {
	if p.WaysOut != "" {
		return p.WaysOut
	}
	return waysOut
}

func allowed(reason string, segments []Segment) Verdict {
	return Verdict{Decision: Allow, Reason: reason, Segments: segments}
}

// verdictOf sums segments up: one bad one blocks all.
func (p Policy) verdictOf(segments []Segment) Verdict {
	for _, s := range segments {
		if s.Decision == Block {
			return Verdict{
				Decision: Block,
				Reason:   fmt.Sprintf("Blocked `%s`: %s. %s", s.Text, s.Reason, p.waysOut()),
				Segments: segments,
			}
		}
	}
	return allowed("every command of it only reads", segments)
}

// longestText is how much of a segment is repeated in a verdict, in bytes.
const longestText = 160

// quote makes source text fit for one line of a reason: what cannot be seen is
// written as an escape, and the middle of a long text is left out.
func quote(text string) string {
	var b strings.Builder
	for _, r := range strings.TrimSpace(text) {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError, r < ' ', r > '~' && unseen(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		if b.Len() > longestText {
			return b.String() + " …"
		}
	}
	return b.String()
}
