package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arg is what one argument of a command will be, as far as it can be told before
// the command runs.
type arg struct {
	// text is the whole argument if exact, else the part at its beginning that is
	// known; a pattern keeps its whole text in literal.
	text    string
	exact   bool
	literal string
	// many: it may become none or several arguments, each beginning with text.
	many bool
	// split: what follows the first blank of a value is an argument of its own, and
	// nothing is known about that.
	split bool
	// plain: although nothing of it is known, it cannot begin with a dash.
	plain bool
}

// mayBeOption tells whether a command could take the argument for an option.
func (a arg) mayBeOption() bool {
	switch {
	case a.split:
		return true
	case a.exact:
		return len(a.text) > 1 && a.text[0] == '-'
	case a.text == "":
		return !a.plain
	default:
		return a.text[0] == '-'
	}
}

// is tells whether the argument is certainly this text.
func (a arg) is(text string) bool { return a.exact && a.text == text }

// piece is one byte of a word after its quotes were taken away, or something that is
// only known when the command runs.
type piece struct {
	c    byte
	kind pieceKind
}

type pieceKind uint8

const (
	bare    pieceKind = iota // unquoted: still open to braces, patterns, tilde
	quoted                   // stands for itself
	empty                    // "" keeps a word in being though it adds no text
	unknown                  // some text
	safe                     // some text that cannot begin with a dash
	parted                   // some text that is split into words
)

// args tells what a word may become. A word without text may vanish, so the result
// can be empty.
func (w *walker) args(word *syntax.Word, depth int) ([]arg, *objection) {
	pieces, o := w.pieces(nil, word.Parts, false, depth)
	if o != nil {
		return nil, o
	}
	alternatives, understood := braces(pieces)
	if !understood {
		return []arg{{text: knownUntil(pieces, "{"), many: true, split: true}}, nil
	}
	if len(alternatives) > maxWords {
		return nil, object("the braces make more than %d words", maxWords)
	}
	var args []arg
	for _, alternative := range alternatives {
		if a, ok := argOf(alternative); ok {
			if len(alternatives) > 1 { // one word for a shell without braces
				a.exact, a.many, a.literal = false, true, ""
			}
			args = append(args, a)
		}
	}
	return args, nil
}

// value is args for places where the shell neither splits nor expands patterns.
func (w *walker) value(word *syntax.Word, depth int) (arg, *objection) {
	if word == nil {
		return arg{exact: true}, nil
	}
	pieces, o := w.pieces(nil, word.Parts, false, depth)
	if o != nil {
		return arg{}, o
	}
	for i := range pieces {
		switch pieces[i].kind {
		case bare:
			if i > 0 || pieces[i].c != '~' {
				pieces[i].kind = quoted
			}
		case parted:
			pieces[i].kind = unknown
		}
	}
	a, _ := argOf(append(pieces, piece{kind: empty}))
	return a, nil
}

// pieces takes the quotes off the parts of a word. It objects to what runs commands
// or changes variables while the word is expanded.
func (w *walker) pieces(to []piece, parts []syntax.WordPart, inQuotes bool, depth int) ([]piece, *objection) {
	for _, part := range parts {
		var o *objection
		switch part := part.(type) {
		case *syntax.Lit:
			to = literal(to, part.Value, inQuotes)
		case *syntax.SglQuoted:
			to, o = singleQuoted(to, part)
		case *syntax.DblQuoted:
			if part.Dollar {
				return nil, object(`$"…" is translated by the shell`).or("use plain quotes")
			}
			to, o = w.pieces(append(to, piece{kind: empty}), part.Parts, true, depth)
		case *syntax.ParamExp:
			to, o = w.parameter(to, part, inQuotes, depth)
		case *syntax.ArithmExp:
			o = w.arithmetic(part, depth)
			to = append(to, piece{kind: unknown})
		case *syntax.CmdSubst:
			w.stmts(part.Stmts, depth+1)
			o = object("what a command substitution prints is not known before it runs").or("run the inner command by itself and write its result out")
		case *syntax.ProcSubst:
			w.stmts(part.Stmts, depth+1)
			o = object("a process substitution runs a command beside this one").or("use a pipe, or two commands")
		default:
			o = object("this kind of pattern is not understood").or("use *, ? and […]")
		}
		if o != nil {
			return nil, o
		}
	}
	return to, nil
}

func literal(to []piece, value string, inQuotes bool) []piece {
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c != '\\' || i+1 == len(value):
			kind := bare
			if inQuotes {
				kind = quoted
			}
			to = append(to, piece{c, kind})
		case !inQuotes || strings.IndexByte("$`\"\\", value[i+1]) >= 0:
			i++
			to = append(to, piece{value[i], quoted})
		default:
			to = append(to, piece{c, quoted})
		}
	}
	return to
}

// singleQuoted reads '…' and $'…'. Of the escapes of the second only those that are
// in common use are understood. A shell without $'…' ends the quotes at the first
// quote, escaped or not.
func singleQuoted(to []piece, part *syntax.SglQuoted) ([]piece, *objection) {
	to = append(to, piece{kind: empty})
	for i := 0; i < len(part.Value); i++ {
		c := part.Value[i]
		if part.Dollar && c == '\\' && i+1 < len(part.Value) {
			i++
			switch part.Value[i] {
			case 't':
				c = '\t'
			case 'n':
				c = '\n'
			case '\\':
			case '\'':
				return nil, object(`an escaped quote in $'…' ends it in some shells`).or(`use "'"`)
			default:
				return nil, object(`the escape \%c in $'…' hides what the word is`, part.Value[i]).or("write the character itself")
			}
		}
		to = append(to, piece{c, quoted})
	}
	return to, nil
}

// argOf joins pieces to an argument; false if nothing is left of the word.
func argOf(pieces []piece) (arg, bool) {
	if len(pieces) == 0 {
		return arg{}, false
	}
	if pieces[0] == (piece{'~', bare}) {
		return arg{text: "/", many: hasPattern(pieces), split: hasKind(pieces, parted)}, true
	}
	a := arg{exact: true}
	var text, whole []byte
	known := true
	for _, p := range pieces {
		switch p.kind {
		case empty:
			continue
		case unknown, safe, parted:
			if a.exact && len(text) == 0 && p.kind == safe {
				a.plain = true
			}
			a.exact, known = false, false
			a.split = a.split || p.kind == parted
			continue
		case bare:
			if strings.IndexByte("*?[", p.c) >= 0 {
				a.exact, a.many = false, true
			}
		}
		if a.exact {
			text = append(text, p.c)
		}
		whole = append(whole, p.c)
	}
	a.text = string(text)
	a.many = a.many || a.split
	if known {
		a.literal = string(whole)
	}
	return a, true
}

func hasPattern(pieces []piece) bool {
	for _, p := range pieces {
		if p.kind == bare && strings.IndexByte("*?[", p.c) >= 0 {
			return true
		}
	}
	return false
}

func hasKind(pieces []piece, kind pieceKind) bool {
	for _, p := range pieces {
		if p.kind == kind {
			return true
		}
	}
	return false
}

// knownUntil is the text before the first unquoted byte of stop, or before the first
// thing that is not known.
func knownUntil(pieces []piece, stop string) string {
	var text []byte
	for _, p := range pieces {
		switch {
		case p.kind == empty:
			continue
		case p.kind > empty, p.kind == bare && strings.IndexByte(stop+"*?[", p.c) >= 0:
			return string(text)
		}
		text = append(text, p.c)
	}
	return string(text)
}
