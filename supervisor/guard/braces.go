package guard

// braces does the brace expansion of bash, which comes before all others. It takes
// part only in what is sure: groups that are balanced and have a comma. Everything
// else that could still be an expansion (sequences, odd braces) is not understood.
// A shell without brace expansion leaves the word as it is; it then begins with the
// same text. More than maxWords alternatives are not made.
func braces(pieces []piece) (alternatives [][]piece, understood bool) {
	open, expands := 0, false
	for i, p := range pieces {
		if p.kind != bare {
			continue
		}
		switch p.c {
		case '{':
			open++
		case '}':
			open--
		case ',':
			expands = expands || open > 0
		case '.':
			expands = expands || open > 0 && i > 0 && pieces[i-1] == piece{'.', bare}
		}
		if open < 0 {
			open = 0
		}
	}
	if !expands {
		return [][]piece{pieces}, true
	}
	g := grouper{pieces: pieces}
	alternatives, ok := g.sequence(false)
	if g.many {
		return make([][]piece, maxWords+1), true
	}
	if !ok || g.at != len(pieces) {
		return nil, false
	}
	return alternatives, true
}

// grouper is a recursive descent over the pieces of a word. Its depth is bounded by
// maxNesting, its result by maxWords and a little.
type grouper struct {
	pieces []piece
	at     int
	many   bool // there are more than maxWords
}

// sequence reads up to the end of the word or, inside a group, its next comma or end.
func (g *grouper) sequence(inGroup bool) ([][]piece, bool) {
	result := [][]piece{nil}
	for g.at < len(g.pieces) {
		p := g.pieces[g.at]
		switch {
		case p == piece{'{', bare}:
			g.at++
			group, ok := g.group()
			if !ok {
				return nil, false
			}
			if len(result)*len(group) > maxWords {
				g.many = true
				return nil, false
			}
			result = combine(result, group)
		case p == piece{'}', bare}:
			return result, inGroup
		case p == piece{',', bare} && inGroup:
			return result, true
		default:
			g.at++
			for i := range result {
				result[i] = append(result[i], p)
			}
		}
	}
	return result, !inGroup
}

// group reads the rest of a group, after its opening brace.
func (g *grouper) group() ([][]piece, bool) {
	if g.at < len(g.pieces) && g.pieces[g.at] == (piece{'}', bare}) {
		g.at++
		return [][]piece{{{'{', quoted}, {'}', quoted}}}, true
	}
	var alternatives [][]piece
	for commas := 0; ; commas++ {
		sequence, ok := g.sequence(true)
		if !ok || g.at >= len(g.pieces) {
			return nil, false
		}
		alternatives = append(alternatives, sequence...)
		if len(alternatives) > maxWords {
			g.many = true
			return nil, false
		}
		end := g.pieces[g.at].c == '}'
		g.at++
		if end {
			return alternatives, commas > 0
		}
	}
}

func combine(heads, tails [][]piece) [][]piece {
	result := make([][]piece, 0, len(heads)*len(tails))
	for _, head := range heads {
		for _, tail := range tails {
			joined := make([]piece, 0, len(head)+len(tail))
			result = append(result, append(append(joined, head...), tail...))
		}
	}
	return result
}
