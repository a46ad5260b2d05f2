package compaction

import (
	"cmp"
	"slices"
)

const (
	recentParts = 16 // come first, from the end
	partsMost   = 80

	// The brief's budget in tokens grows with the number of blocks.
	briefLeast    = 1100
	briefMost     = 2000
	briefPerBlock = 15
)

var testCommand = pattern(`(?i)\b(?:go (?:test|vet)|(?:npm|pnpm|yarn|bun)(?: run)? (?:test|lint|build|check)|pytest|unittest|tox|cargo (?:test|check|clippy)|vitest|jest|mocha|` +
	`phpunit|rspec|ctest|make (?:test|check|lint)|tsc|eslint|ruff|mypy|golangci-lint|mvn (?:test|verify)|gradlew? (?:test|check))\b`)

// score is how much a block is worth in the brief. Recency is from 0, the first
// block, to 1, the last (spec: compaction 6.4).
func score(b block, recency float64, changed, read map[string]bool) float64 {
	points := 12 * recency
	switch b.kind {
	case userText:
		return points + 18
	case assistantText:
		return points + 10
	case bashRun:
		points += 8
		if b.failed {
			points += 24
		}
		if isTest(b) {
			points += 22
		}
		return points
	}
	switch use := b.use(); {
	case use == useEdit || use == useWrite:
		points += 34
	case use == useRead:
		points += 6
	case use == useShell && isTest(b):
		points += 26
	default:
		points += 12
	}
	switch path := b.path(); {
	case changed[path]:
		points += 18
	case read[path]:
		points += 6
	}
	return points
}

func isTest(b block) bool { return testCommand().MatchString(clip(b.command(), commandClip)) }

// part is a block that may be in the brief.
type part struct {
	block
	order int
	score float64
}

// chooseParts selects the blocks of the brief, in order: the last ones, then those
// that are worth most, as far as they fit into the budget. Results are never in it.
func chooseParts(blocks []block, f files, g gauge) []block {
	budget := min(g.chars(briefMost), max(g.chars(briefLeast), g.chars(briefPerBlock*len(blocks))))
	changed, read := set(append(slices.Clone(f.modified), f.created...)), set(f.read)
	var parts []part
	for i, b := range blocks {
		if b.kind != toolResult {
			recency := float64(i) / float64(max(len(blocks)-1, 1))
			parts = append(parts, part{b, i, score(b, recency, changed, read)})
		}
	}
	var chosen []part
	take := func(p part) {
		if n := length(render(p.block)); n > 0 && n < budget {
			budget -= n + 1
			chosen = append(chosen, p)
		}
	}
	recent := last(parts, recentParts)
	for _, p := range slices.Backward(recent) {
		take(p)
	}
	older := parts[:len(parts)-len(recent)]
	slices.SortFunc(older, func(a, b part) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.order, a.order))
	})
	for _, p := range older {
		if len(chosen) == partsMost || budget <= 0 {
			break
		}
		take(p)
	}
	slices.SortFunc(chosen, func(a, b part) int { return cmp.Compare(a.order, b.order) })
	kept := make([]block, len(chosen))
	for i, p := range chosen {
		kept[i] = p.block
	}
	return kept
}

func set(list []string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, s := range list {
		m[s] = s != ""
	}
	return m
}
