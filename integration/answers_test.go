package integration_test

import "pilothouse/integration/scriptedmodel"

// The lenses as the briefs of the lanes word them (spec: subagents 4.1).
const (
	correctnessLens  = "Review lens: Requirements fit and correctness"
	orderingLens     = "Review lens: Architecture and order"
	verificationLens = "Review lens: Verification, risk and evidence"
)

const oneFinding = `## Findings

### F-001 · high · The oven is full
- Affects: I-001, VC-001
- Evidence: oven/oven.go:5 — "const Minutes = 45"
- Impact: Forty loaves do not fit into one batch.
- Fix: Bake in two batches.
- Disposition: accept

## Checked

- how long a batch takes`

const nothingFound = `## Findings

No findings.

## Checked

- the order of the steps`

const criticism = `## Summary
The plan assumes that one oven is enough.

## Questions
1. What happens on a day with more than forty orders?
   Why: docs/decision.md names that number as the limit.
2. Who tells the customer?
   Why: nothing in the plan does.`

const analysis = `## Overview
A small reference (NOTES.md:1).

## Key Mechanisms And Design Tradeoffs
It keeps one list (NOTES.md:1).

## Adoptable Ideas For The Target Repo
- The list. Effort: small.

## Pitfalls And Anti-Patterns
- None that was seen.

## Evidence Citations
- NOTES.md:1 — "notes" shows the list

## Coverage
In full: NOTES.md.

## Evidence Gaps
None.`

func say(text string) scriptedmodel.Step { return scriptedmodel.Step{Text: text, Chunks: 4} }

func call(tool string, args map[string]any) scriptedmodel.Step {
	return scriptedmodel.Step{Tool: tool, Args: args}
}

// on scripts the conversations whose task has match in it.
func on(match string, steps ...scriptedmodel.Step) scriptedmodel.Rule {
	return scriptedmodel.Rule{Match: match, Steps: steps}
}

// endless streams for minutes; only a cancel or a kill ends it.
func endless() scriptedmodel.Step {
	return scriptedmodel.Step{TextBytes: 100_000, Chunks: 10_000, DelayMs: 50}
}

const plan = `# Bake more bread

## Items
- I-001 Bake forty loaves a day in the one oven.

## Verification
- VC-001 Forty loaves are on the shelf at noon.
`
