package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var lowerName = lazily(`^[a-z_][a-z0-9_]*$`)

// ownVariable tells whether a name belongs to the text alone. Names in capitals may
// mean something to the shell (PATH, IFS) or be exported to commands (HOME, LANG);
// of the others, some tools read those that name a proxy.
func ownVariable(name string) bool {
	return lowerName().MatchString(name) && name != "_" && !strings.HasSuffix(name, "_proxy")
}

// collect finds the variables that never hold a text that begins with a dash. It
// looks at every assignment and loop, whatever the order they run in, so a variable
// may also be empty. Those that read sets can hold anything.
func collect(file *syntax.File) map[string]bool {
	known := map[string]bool{}
	lost := map[string]bool{}
	add := func(name string, plain bool) {
		known[name] = true
		if !plain {
			lost[name] = true
		}
	}
	w := &walker{} // values may not refer to other variables
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			for _, assign := range n.Assigns {
				if assign.Value == nil || assign.Append || assign.Index != nil || !constant(assign.Value) {
					lost[assign.Name.Value] = true
					continue
				}
				a, o := w.value(assign.Value, 0)
				add(assign.Name.Value, o == nil && !a.mayBeOption())
			}
			if len(n.Args) > 0 && n.Args[0].Lit() == "read" {
				for _, word := range n.Args[1:] {
					lost[word.Lit()] = true
				}
			}
		case *syntax.WordIter:
			for _, item := range n.Items {
				if !constant(item) {
					lost[n.Name.Value] = true
					continue
				}
				args, o := w.args(item, 0)
				for _, a := range args {
					add(n.Name.Value, !a.mayBeOption())
				}
				if o != nil {
					lost[n.Name.Value] = true
				}
			}
			if !n.InPos.IsValid() {
				lost[n.Name.Value] = true
			}
		}
		return true
	})
	for name := range lost {
		delete(known, name)
	}
	return known
}

// constant tells whether a word is made of plain text and quotes only.
func constant(word *syntax.Word) bool {
	for _, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				if _, ok := inner.(*syntax.Lit); !ok {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}
