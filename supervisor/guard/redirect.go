package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	descriptor = lazily(`^([0-9]{1,3}-?|-)$`)
	delimiter  = lazily(`^[A-Za-z0-9_.:!+-]+$`)
)

// redirect allows reading from files, copying and closing descriptors, text given in
// place, and writing to /dev/null.
func (w *walker) redirect(r *syntax.Redirect, depth int) *objection {
	if r.N != nil && !isNumber(r.N.Value) {
		return object("{%s} keeps a descriptor open under a name", strings.Trim(r.N.Value, "{}"))
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return w.heredoc(r, depth)
	}
	target, o := w.value(r.Word, depth)
	if o != nil {
		return o
	}
	switch r.Op {
	case syntax.WordHdoc:
		return nil
	case syntax.RdrIn:
		return readable(target)
	case syntax.DplIn:
		if target.exact && descriptor().MatchString(target.text) {
			return nil
		}
		return object("only a number may follow <&")
	case syntax.DplOut:
		if target.exact && descriptor().MatchString(target.text) {
			return nil
		}
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
	case syntax.RdrInOut:
		return object("<> opens for writing and creates what is missing").or("use <")
	default:
		return object("this redirection is not understood")
	}
	if target.is("/dev/null") {
		return nil
	}
	return object("the redirection to %s writes", name(target)).or("let it print, or send it to /dev/null")
}

// readable refuses the names that make bash open a network connection.
func readable(target arg) *objection {
	switch {
	case strings.HasPrefix(target.text, "/dev/tcp/"), strings.HasPrefix(target.text, "/dev/udp/"):
		return object("%s opens the network", target.text)
	case target.exact:
	case target.text == "", mayLead(target.text, "/dev/tcp/"), mayLead(target.text, "/dev/udp/"):
		return object("what is read is not known, and some names open the network").or("write the name out")
	}
	return secret(target)
}

// mayLead tells whether more text could turn a beginning into a name below dir.
func mayLead(beginning, dir string) bool { return strings.HasPrefix(dir, beginning) }

// heredoc judges the text in place. Shells agree on where it ends if the delimiter
// is plain and no line of an expanded text is continued.
func (w *walker) heredoc(r *syntax.Redirect, depth int) *objection {
	isQuoted := false
	var end string
	for _, part := range r.Word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			end += part.Value
		case *syntax.SglQuoted:
			isQuoted = isQuoted || !part.Dollar
			end += part.Value
		case *syntax.DblQuoted:
			isQuoted = isQuoted || !part.Dollar
			if len(part.Parts) == 1 {
				if lit, ok := part.Parts[0].(*syntax.Lit); ok {
					end += lit.Value
				}
			}
		}
	}
	if len(r.Word.Parts) != 1 || !delimiter().MatchString(end) {
		return object("the end mark of the text in place is not plain").or("use <<'EOF'")
	}
	if r.Hdoc == nil || isQuoted {
		return nil
	}
	if strings.Contains(w.source[r.Hdoc.Pos().Offset():r.Hdoc.End().Offset()], `\`) {
		return object("shells differ about a backslash in an expanded text in place").or("use <<'EOF'")
	}
	_, o := w.pieces(nil, r.Hdoc.Parts, true, depth)
	return o
}

func name(a arg) string {
	if a.exact {
		return quote(a.text)
	}
	if a.literal != "" {
		return quote(a.literal)
	}
	return "a name that is not known before it runs"
}
