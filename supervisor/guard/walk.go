package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// walker collects the segments of one command in the order they are written.
type walker struct {
	policy Policy
	source string
	// variables never hold a text that begins with a dash.
	variables map[string]bool
	// leaves tells that some cd may lead out of the workspace.
	leaves bool
	// moves tells that there is a cd at all.
	moves    bool
	segments []Segment
}

func (w *walker) text(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if stmt, ok := n.(*syntax.Stmt); ok && stmt.Semicolon.IsValid() {
		to = int(stmt.Semicolon.Offset())
	}
	if from >= to || to > len(w.source) {
		return ""
	}
	return quote(w.source[from:to])
}

// segment records a judged piece of the source; o is nil for an allowed one.
func (w *walker) segment(n syntax.Node, o *objection) {
	s := Segment{Text: w.text(n), Decision: Allow, Reason: "only reads"}
	if o != nil {
		s.Decision, s.Reason = Block, o.String()
	}
	w.segments = append(w.segments, s)
}

func (w *walker) stmts(stmts []*syntax.Stmt, depth int) {
	for _, stmt := range stmts {
		if len(w.segments) > maxCommands {
			return
		}
		if len(w.segments) == maxCommands {
			w.segment(stmt, object("there are more than %d commands in one text", maxCommands).or("split it"))
			return
		}
		w.stmt(stmt, depth)
	}
}

func (w *walker) stmt(stmt *syntax.Stmt, depth int) {
	if depth > maxNesting {
		w.segment(stmt, object("the command is nested more than %d levels deep", maxNesting).or("write it flat"))
		return
	}
	if stmt.Background || stmt.Coprocess || stmt.Disown {
		w.segment(stmt, object("& starts a job that outlives the call").or("run it in the foreground"))
	}
	call, simple := stmt.Cmd.(*syntax.CallExpr)
	if simple || stmt.Cmd == nil {
		w.simple(stmt, call, depth)
		return
	}
	for _, redirect := range stmt.Redirs {
		if o := w.redirect(redirect, depth); o != nil {
			w.segment(redirect, o)
		}
	}
	w.compound(stmt, depth+1)
}

// simple judges a command with its assignments and redirections as one segment.
// Commands inside its substitutions follow as segments of their own.
func (w *walker) simple(stmt *syntax.Stmt, call *syntax.CallExpr, depth int) {
	at := len(w.segments)
	w.segments = append(w.segments, Segment{})
	var o *objection
	if call != nil {
		o = w.call(call, depth)
	}
	for _, redirect := range stmt.Redirs {
		if found := w.redirect(redirect, depth); o == nil {
			o = found
		}
	}
	s := Segment{Text: w.text(stmt), Decision: Allow, Reason: "only reads"}
	if o != nil {
		s.Decision, s.Reason = Block, o.String()
	}
	w.segments[at] = s
}

func (w *walker) compound(stmt *syntax.Stmt, depth int) {
	switch c := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		w.stmt(c.X, depth)
		w.stmt(c.Y, depth)
	case *syntax.Subshell:
		w.stmts(c.Stmts, depth)
	case *syntax.Block:
		w.stmts(c.Stmts, depth)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.stmt(c.Stmt, depth)
		}
	case *syntax.IfClause:
		for clause := c; clause != nil; clause = clause.Else {
			w.stmts(clause.Cond, depth)
			w.stmts(clause.Then, depth)
		}
	case *syntax.WhileClause:
		w.stmts(c.Cond, depth)
		w.stmts(c.Do, depth)
	case *syntax.ForClause:
		w.loop(c, depth)
	case *syntax.CaseClause:
		w.cases(c, depth)
	case *syntax.TestClause:
		o := w.test(c.X, depth)
		if strings.Contains(w.source[c.Left.Offset():c.Right.Offset()], "\n") {
			o = object("a line break in [[ ]] ends it in some shells").or("write it on one line")
		}
		w.segment(c, o)
	case *syntax.FuncDecl:
		w.segment(c, object("a function may take the name of any command").or("write the commands themselves"))
		w.stmt(c.Body, depth)
	case *syntax.CoprocClause:
		w.segment(c, object("coproc starts a job that outlives the call").or("run it in the foreground"))
		w.stmt(c.Stmt, depth)
	case *syntax.DeclClause:
		w.segment(c, object("%s changes variables of the shell, and what later commands do may depend on them", c.Variant.Value).or("put the value where it is used"))
	case *syntax.LetClause, *syntax.ArithmCmd:
		w.segment(c, object("arithmetic commands assign variables and evaluate what they hold").or("use $((…)) with plain numbers"))
	default:
		w.segment(stmt, object("this construct is not understood"))
	}
}

func (w *walker) loop(c *syntax.ForClause, depth int) {
	switch iter, ok := c.Loop.(*syntax.WordIter); {
	case c.Select:
		w.segment(c.Loop, object("select waits for a person"))
	case !ok:
		w.segment(c.Loop, object("arithmetic loops assign variables and evaluate what they hold").or("loop over words"))
	case !ownVariable(iter.Name.Value):
		w.segment(c.Loop, object("the variable %s may mean something to the shell or to a command", iter.Name.Value).or("use a name in lower case"))
	default:
		for _, item := range iter.Items {
			if _, o := w.args(item, depth); o != nil {
				w.segment(item, o)
			}
		}
	}
	w.stmts(c.Do, depth)
}

func (w *walker) cases(c *syntax.CaseClause, depth int) {
	if _, o := w.args(c.Word, depth); o != nil {
		w.segment(c.Word, o)
	}
	for _, item := range c.Items {
		for _, pattern := range item.Patterns {
			if _, o := w.args(pattern, depth); o != nil {
				w.segment(pattern, o)
			}
		}
		w.stmts(item.Stmts, depth)
	}
}
