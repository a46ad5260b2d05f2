package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// unary operators of test. -v and -R are left out: bash evaluates the subscript
	// of the name they are given, even a quoted one.
	unaryTests  = "-a -b -c -d -e -f -g -h -k -n -o -p -r -s -t -u -w -x -z -G -L -N -O -S"
	binaryTests = "= == != < > -nt -ot -ef"
	numberTests = "-eq -ne -lt -le -gt -ge"
)

// plainPattern is a regular expression without anything that a shell could read.
var plainPattern = lazily(`^\^?[A-Za-z0-9_./+*-]+$`)

// testOperators reads an expression of test or [. What each word means depends on
// how many there are, so operators have to be written out.
func testOperators(_ *walker, c *call) *objection {
	words := c.operands
	if c.name == "[" {
		if len(words) == 0 || !words[len(words)-1].is("]") {
			return object("[ lacks its ]")
		}
		words = words[:len(words)-1]
	}
	for _, a := range words {
		if a.many || a.split {
			return object("what is not known before it runs may become an operator of test").or("quote it")
		}
	}
	for len(words) > 0 {
		switch {
		case oneOf(words[0], "! ( )"):
			words = words[1:]
			continue
		case len(words) >= 3 && oneOf(words[1], numberTests):
			for _, side := range []arg{words[0], words[2]} {
				if side.exact && !isNumber(strings.TrimPrefix(side.text, "-")) {
					return object("test compares the number %s, and some shells evaluate what is none", name(side)).or("write a number")
				}
			}
			words = words[3:]
		case len(words) >= 3 && oneOf(words[1], binaryTests):
			words = words[3:]
		case len(words) >= 2 && oneOf(words[0], unaryTests):
			words = words[2:]
		case len(words) == 1 || oneOf(words[1], "-a -o )"):
			words = words[1:]
		default:
			return object("test %s is not known to only read", name(words[0])).or("use one operator at a time, written out; bash evaluates what -v and -R are given")
		}
		if len(words) > 0 && oneOf(words[0], "-a -o") {
			words = words[1:]
		}
	}
	return nil
}

// test judges [[ … ]]. Its arithmetic operators evaluate their operands. A shell
// that does not have it reads > as a redirection and runs what follows ||, && or a
// line break.
func (w *walker) test(x syntax.TestExpr, depth int) *objection {
	if depth > maxNesting {
		return object("the test is nested more than %d levels deep", maxNesting)
	}
	switch x := x.(type) {
	case *syntax.Word:
		_, o := w.value(x, depth)
		return o
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			return object("bash evaluates the subscript of what %s is given", x.Op).or("use -n or -z with a plain $name")
		}
		return w.test(x.X, depth+1)
	case *syntax.BinaryTest:
		return w.binaryTest(x, depth)
	default:
		return object("parentheses in [[ ]] are read differently by different shells").or("use two tests")
	}
}

// startsWithWord tells whether a test begins with something that could be the name of
// a command, and not with an operator such as -f.
func startsWithWord(x syntax.TestExpr) bool {
	switch x := x.(type) {
	case *syntax.BinaryTest:
		return startsWithWord(x.X)
	case *syntax.UnaryTest:
		return x.Op == syntax.TsNot
	default:
		return true
	}
}

func (w *walker) binaryTest(x *syntax.BinaryTest, depth int) *objection {
	switch x.Op {
	case syntax.AndTest:
		if startsWithWord(x.Y) {
			return object("a shell without [[ ]] runs what follows && in it").or("use [[ … ]] && [[ … ]]")
		}
	case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch, syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		for _, side := range []syntax.TestExpr{x.X, x.Y} {
			word, ok := side.(*syntax.Word)
			if !ok {
				return object("this test is not understood")
			}
			if o := w.expression(word, depth+1); o != nil {
				return o
			}
		}
		return nil
	case syntax.TsReMatch:
		word, ok := x.Y.(*syntax.Word)
		if !ok || !plainPattern().MatchString(word.Lit()) {
			return object("this pattern is read differently by different shells").or("use grep")
		}
		return w.test(x.X, depth+1)
	default:
		return object("%s in [[ ]] is read differently by different shells, or evaluated", x.Op).or("use [ ] with =, or two tests")
	}
	if o := w.test(x.X, depth+1); o != nil {
		return o
	}
	return w.test(x.Y, depth+1)
}
