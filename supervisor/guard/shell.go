package guard

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Shell judges one command as a shell would be given it with -c. It allows it only
// if every command that may run is known to do nothing but read.
func (p Policy) Shell(command string) Verdict {
	if o := checkText(command); o != nil {
		text := quote(command)
		return p.blocked(text, o, []Segment{{Text: text, Decision: Block, Reason: o.String()}})
	}
	file, err := parse(command)
	if err == nil {
		err = checkComments(file, command)
	}
	if err != nil {
		o := object("it cannot be parsed as a shell command (%v)", err).or("correct it, or split it into simple commands")
		text := quote(command)
		return p.blocked(text, o, []Segment{{Text: text, Decision: Block, Reason: o.String()}})
	}
	w := &walker{policy: p, source: command}
	w.variables = collect(file)
	w.leaves = w.leavesWorkspace(file)
	w.moves = moves(file)
	w.stmts(file.Stmts, 0)
	if len(w.segments) == 0 {
		o := object("there is no command in it")
		return p.blocked(quote(command), o, []Segment{{Text: quote(command), Decision: Block, Reason: o.String()}})
	}
	return p.verdictOf(w.segments)
}

// parse reads a command as bash. The parser is not ours, so a fault in it is one
// more text that is not understood.
func parse(command string) (file *syntax.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, fmt.Errorf("the parser failed: %v", r)
		}
	}()
	return syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(command), "")
}

// checkComments makes sure that every comment ends where its line does. The parser
// takes a backslash at the end of a line for a continuation in comments too, a shell
// does not.
func checkComments(file *syntax.File, source string) (err error) {
	syntax.Walk(file, func(n syntax.Node) bool {
		if comment, ok := n.(*syntax.Comment); ok {
			line, _, _ := strings.Cut(source[comment.Hash.Offset():], "\n")
			if line != "#"+comment.Text || strings.HasSuffix(line, `\`) {
				err = errors.New("a comment ends in a backslash")
			}
		}
		return true
	})
	return err
}
