package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// parameter judges $name, ${name} and ${#name}. All other forms are refused: some
// assign, some evaluate their value as a prompt, a name or an expression, and none
// is needed to look at something.
func (w *walker) parameter(to []piece, p *syntax.ParamExp, inQuotes bool, depth int) ([]piece, *objection) {
	if p.Index != nil {
		return nil, object("the subscript of an array is evaluated, and may run commands")
	}
	if p.Param == nil || p.Excl || p.Names != 0 || p.Slice != nil || p.Repl != nil || p.Exp != nil ||
		p.Width || p.IsSet || p.Flags != nil || p.NestedParam != nil || len(p.Modifiers) > 0 {
		if p.Exp != nil && p.Exp.Word != nil {
			if _, o := w.pieces(nil, p.Exp.Word.Parts, true, depth); o != nil {
				return nil, o
			}
		}
		return nil, object("${…} with an operator may assign or evaluate").or("use a plain $name, or the value itself")
	}
	switch name := p.Param.Value; {
	case p.Length, name == "#", name == "?", name == "$", name == "HOME", name == "PWD":
		return append(to, piece{kind: safe}), nil
	case name == "@", !inQuotes: // without quotes an empty value takes its word away
		return append(to, piece{kind: parted}), nil
	case w.variables[name]:
		return append(to, piece{kind: safe}), nil
	default:
		return append(to, piece{kind: unknown}), nil
	}
}

// arithmetic allows numbers and operators. The value of a name would be evaluated as
// an expression itself, and a subscript in it can run commands.
func (w *walker) arithmetic(a *syntax.ArithmExp, depth int) *objection {
	if a.Bracket || a.Unsigned {
		return object("this old form of arithmetic is not understood").or("use $((…))")
	}
	return w.expression(a.X, depth)
}

func (w *walker) expression(x syntax.ArithmExpr, depth int) *objection {
	if depth > maxNesting {
		return object("the arithmetic is nested more than %d levels deep", maxNesting)
	}
	switch x := x.(type) {
	case *syntax.ParenArithm:
		return w.expression(x.X, depth+1)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			return object("arithmetic assigns here")
		}
		return w.expression(x.X, depth+1)
	case *syntax.BinaryArithm:
		if o := w.expression(x.X, depth+1); o != nil {
			return o
		}
		return w.expression(x.Y, depth+1)
	case *syntax.Word:
		a, o := w.value(x, depth)
		if o != nil {
			return o
		}
		if isNumber(a.text) && a.exact || w.numeric(x) {
			return nil
		}
		return object("arithmetic evaluates what a name holds, and that may run commands").or("use plain numbers")
	default:
		return object("this arithmetic is not understood").or("use plain numbers")
	}
}

// numeric tells of expansions that are always a number: ${#x}, $#, $?.
func (w *walker) numeric(word *syntax.Word) bool {
	if len(word.Parts) != 1 {
		return false
	}
	p, ok := word.Parts[0].(*syntax.ParamExp)
	return ok && p.Param != nil && (p.Length || p.Param.Value == "#" || p.Param.Value == "?")
}

func isNumber(text string) bool {
	return text != "" && len(text) < 19 && strings.Trim(text, "0123456789") == ""
}
