package guard

import (
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// gitDirectory keeps git inside the workspace: git runs what the configuration of
// the repository it is started in tells it to.
func gitDirectory(w *walker, c *call) *objection {
	const instead = "stay inside the workspace, or look with ls, cat and rg"
	if w.leaves {
		return object("git obeys the configuration of the directory that cd leads to").or(instead)
	}
	moved := false
	for _, o := range c.options {
		if o.name != "-C" {
			continue
		}
		if !w.policy.inside(o.value, !moved) {
			return object("git obeys the configuration of %s, which is not known to be in the workspace", name(o.value)).or(instead)
		}
		moved = true
	}
	return nil
}

// leavesWorkspace looks at every cd of a text, whatever the order they run in.
func (w *walker) leavesWorkspace(file *syntax.File) bool {
	var targets []arg
	leaves := false
	scan := &walker{policy: w.policy, source: w.source, variables: w.variables}
	syntax.Walk(file, func(n syntax.Node) bool {
		c, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		at := -1
		for i, word := range c.Args {
			if word.Lit() == cdNames {
				at = i
				break
			}
		}
		if at < 0 {
			return true
		}
		var given []arg
		for _, word := range c.Args[at+1:] {
			args, o := scan.args(word, 0)
			if o != nil {
				leaves = true
			}
			for _, a := range args {
				if !oneOf(a, "-L -P -e --") {
					given = append(given, a)
				}
			}
		}
		if len(given) != 1 {
			leaves = true
			return true
		}
		targets = append(targets, given[0])
		return true
	})
	for _, target := range targets {
		leaves = leaves || target.is("-") || !w.policy.inside(target, len(targets) == 1)
	}
	return leaves
}

// inside tells whether a directory is certainly in the workspace, judged by its
// name. first: it is relative to the directory that tools start in, else to an
// unknown one below the workspace.
func (p Policy) inside(target arg, first bool) bool {
	if !target.exact {
		return false
	}
	start := p.Dir
	if start == "" {
		start = p.Workspace
	}
	switch path := filepath.Clean(target.text); {
	case target.text == "":
		return true
	case filepath.IsAbs(path):
		return within(p.Workspace, path)
	case path != ".." && !strings.HasPrefix(path, "../"):
		return true
	default:
		return first && start != "" && within(p.Workspace, filepath.Join(start, path))
	}
}

// within tells whether path is dir or below it; both are clean and absolute.
func within(dir, path string) bool {
	return dir != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/"))
}

var (
	// %G… of a commit format and %(signature…) of a ref format ask gpg.
	signatureFormat = lazily(`%[-+ ]?G|signature`)
	// merges made again to compare with are stored for a while.
	remerge = lazily(`^(r|remerge)$`)
)

// gitFormats refuses formats that make git run gpg.
func gitFormats(_ *walker, c *call) *objection {
	for _, o := range c.options {
		switch o.name {
		case "--format", "--pretty", "--sort":
			if !o.value.exact {
				return object("the value of %s %s is not known before it runs", c.name, o.name).or("write it out")
			}
			if signatureFormat().MatchString(o.value.text) {
				return object("%s %s asks gpg about signatures", c.name, o.name).or("leave that part out")
			}
		case "--diff-merges":
			if !o.value.exact || remerge().MatchString(o.value.text) {
				return object("%s %s writes objects", c.name, o.name).or("use -m or --cc")
			}
		}
	}
	return nil
}

// gitConfig allows one key without a value, and the listing and reading words of
// newer versions, which older ones take for a key without a section and refuse.
func gitConfig(_ *walker, c *call) *objection {
	n := len(c.operands)
	if c.has("-l --list --get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool") {
		return nil
	}
	for _, a := range c.operands {
		if a.many {
			return object("git config sets a key if it is given two operands").or("write them out")
		}
	}
	if n <= 1 || n == 2 && c.operands[0].is("get") {
		return nil
	}
	return object("git config %s sets a value", name(c.operands[0])).or("use git config --get")
}

// gitReflog allows show, which is also what a plain ref means.
func gitReflog(w *walker, c *call) *objection {
	if len(c.operands) > 0 {
		first := c.operands[0]
		ref := first.exact && (oneOf(first, "show exists list") || strings.HasPrefix(first.text, "HEAD") || strings.ContainsAny(first.text, "@/"))
		if !ref {
			return object("git reflog %s is not known to only read", name(first)).or("use git reflog show")
		}
	}
	return gitFormats(w, c)
}
