// Package extension_test has the Pi extension as its users meet it: the pinned Pi with
// the extension as `pilothouse install` puts it there, the daemon that it starts, and a
// scripted model for the session and its subagents.
package extension_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const planText = "# Bake more bread\n\n## Implementation Items\n- `I-001`: bake forty loaves a day\n\n" +
	"## Verifier Checklist\n- [ ] `VC-001` I-001; pass: forty loaves; evidence: count them\n"

const reviewText = "## Findings\n\nNo findings.\n\n## Checked\n\n- the oven"

// lane matches the brief of a subagent, never what a person types.
const lane = "Authority boundary:"

// reviewers are subagents that find nothing.
func reviewers(steps ...scriptedmodel.Step) scriptedmodel.Rule {
	if len(steps) == 0 {
		steps = []scriptedmodel.Step{{Text: reviewText, Chunks: 4}}
	}
	return scriptedmodel.Rule{Match: lane, Steps: steps}
}

// gatedPi is a program in the place of the pi of a subagent. It reads its task, says that
// it looks, waits for the file $GATE and answers as a reviewer.
const gatedPi = `#!/bin/sh
cat >/dev/null
say() { printf '%s\n' "$1"; }
say '{"type":"session","version":3,"id":"stub"}'
say '{"type":"agent_start"}'
say '{"type":"turn_start"}'
say '{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"I look at the oven."}}'
until [ -e "$GATE" ]; do sleep 0.05; done
say '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"## Findings\n\nNo findings.\n\n## Checked\n\n- the oven"}],"model":"stub","stopReason":"stop","usage":{"input":10,"output":5,"cost":{"total":0.25}}}}'
say '{"type":"agent_end","messages":[],"willRetry":false}'
say '{"type":"agent_settled","aborted":false}'
`

// gated makes the subagents of sessions from now on wait for the returned function.
func (s *scene) gated() (open func()) {
	s.t.Helper()
	program, gate := filepath.Join(s.Runtime, "pi"), filepath.Join(s.Runtime, "gate")
	if err := os.WriteFile(program, []byte(gatedPi), 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.Env = append(s.Env, "PILOTHOUSE_PI="+program, "GATE="+gate)
	return func() {
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// responding waits until that many lanes have said something.
func (s *scene) responding(lanes int) {
	s.t.Helper()
	s.Eventually("the lanes respond", func() bool {
		return strings.Count(s.Ask("/v1/lanes").At("lanes").Each("phase"), "responding") == lanes
	})
}

// scene is a user's repository with the plan as PLAN_v1.md, and the extension.
type scene struct {
	*piharness.Scene
	t testing.TB
}

// newScene installs the extension for a user whose model answers by the rules.
func newScene(t testing.TB, rules ...scriptedmodel.Rule) *scene {
	t.Helper()
	s := &scene{piharness.NewScene(t, rules...), t}
	// The session tells the daemon which Pi it is.
	s.Env = slices.DeleteFunc(s.Env, func(entry string) bool { return strings.HasPrefix(entry, "PILOTHOUSE_PI=") })
	s.Write("PLAN_v1.md", planText)
	s.Install()
	return s
}

// confirm answers the questions that come before the first round of a role.
func (s *scene) confirm(roles ...string) {
	s.t.Helper()
	s.must("plans", "init")
	for _, role := range roles {
		s.must("plans", "set-role", "--role", role, "--mode", "delegated-subagent", "--confirmed", "true", "--modelSelector", "inherit")
	}
}

// must runs pilothouse to its end and returns what it prints.
func (s *scene) must(args ...string) string {
	s.t.Helper()
	return s.Must(0, args...).Stdout
}

func contains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
}
