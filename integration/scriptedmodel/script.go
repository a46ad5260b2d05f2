package scriptedmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// Rule scripts the conversations whose last user message matches. A script in a
// user message wins over every rule; the first rule that matches wins over the
// later ones.
type Rule struct {
	// Match is a regular expression in Go's syntax, matched anywhere.
	Match string
	// Steps are used one a model call after that user message; the last one
	// repeats.
	Steps []Step
}

type compiledRule struct {
	pattern *regexp.Regexp
	steps   []Step
}

func compileRules(rules []Rule) ([]compiledRule, error) {
	var compiled []compiledRule
	for i, r := range rules {
		pattern, err := regexp.Compile(r.Match)
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i, err)
		}
		if err := checkSteps(r.Steps); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i, err)
		}
		if _, err := json.Marshal(r.Steps); err != nil {
			return nil, fmt.Errorf("rule %d: step has no JSON form: %w", i, err)
		}
		compiled = append(compiled, compiledRule{pattern, r.Steps})
	}
	return compiled, nil
}

// cue is the place in a script that a request has reached.
type cue struct {
	step Step
	turn int    // model calls answered since the user message
	key  string // same key, same step of the same conversation: attempts are counted by it
}

// cueFor finds the step for a request: the last user message that carries a
// script decides, else the first rule that matches the last user message, else
// the text "ok".
func cueFor(c *completion, rules []compiledRule) (cue, error) {
	for i := len(c.messages) - 1; i >= 0; i-- {
		if c.messages[i].Role != "user" {
			continue
		}
		text := string(c.messages[i].Content)
		steps, err := parseScript(text)
		if errors.Is(err, errNoScript) {
			continue
		}
		if err != nil {
			return cue{}, err
		}
		return newCue(steps, c.turnsAfter(i), text), nil
	}
	if last := c.lastUser(); last >= 0 {
		text := c.lastUserText()
		for i, r := range rules {
			if r.pattern.MatchString(text) {
				return newCue(r.steps, c.turnsAfter(last), strconv.Itoa(i)+"\x00"+text), nil
			}
		}
	}
	return newCue(nil, 0, ""), nil
}

func newCue(steps []Step, turn int, conversation string) cue {
	step := Step{Text: "ok"}
	if len(steps) > 0 {
		step = steps[min(turn, len(steps)-1)]
	}
	return cue{step: step, turn: turn, key: strconv.Itoa(turn) + "\x00" + conversation}
}

// forAttempt is the step for the n-th request (from 1) with the same key.
func (s Step) forAttempt(n int) Step {
	if s.Times == 0 || n <= s.Times {
		return s
	}
	if s.Then != nil {
		return *s.Then
	}
	return Step{Text: fmt.Sprintf("recovered after %d failures", n-1)}
}
