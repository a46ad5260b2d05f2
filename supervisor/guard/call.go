package guard

import (
	"path"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call judges a simple command: what it assigns and what it runs.
func (w *walker) call(c *syntax.CallExpr, depth int) *objection {
	for _, assign := range c.Assigns {
		if o := w.assign(assign, len(c.Args) > 0, depth); o != nil {
			return o
		}
	}
	if len(c.Args) == 0 {
		return nil
	}
	if o := commandWord(c.Args[0]); o != nil {
		// The arguments may hold substitutions, which are judged all the same.
		for _, word := range c.Args {
			_, _ = w.args(word, depth)
		}
		return o
	}
	var args []arg
	var first *objection
	for _, word := range c.Args[1:] {
		more, o := w.args(word, depth)
		if first == nil {
			first = o
		}
		args = append(args, more...)
	}
	name := c.Args[0].Lit()
	e := lookup(name)
	switch {
	case len(args) > maxArguments:
		return object("the command has more than %d arguments", maxArguments).or("split it")
	case first != nil && e != nil && e.effect != reads: // the plainer reason
		return object("%s", e.reason(name))
	case first != nil:
		return first
	case w.fetches(name, args):
		return nil
	default:
		return w.command(name, args, 0)
	}
}

// commandWord refuses command words that are not plainly a name: quotes and
// expansions hide which command it is, and a path may lead to any file.
func commandWord(word *syntax.Word) *objection {
	name := word.Lit()
	switch {
	case name == "":
		return object("the name of the command is quoted or expanded").or("write it plainly")
	case strings.Contains(name, `\`):
		return object("a backslash hides the name of the command").or("write it plainly")
	case strings.Contains(name, "/"):
		return object("a path may lead to any program").or("use the bare name of a known command")
	case strings.ContainsAny(name, "{}*?~"):
		return object("the name of the command is expanded").or("write it plainly")
	}
	return nil
}

// environment are the variables that may be set for a command, with the values they
// may have. All change only how text is shown, or keep git from writing.
var environment = []struct{ name, value func() *regexp.Regexp }{
	{lazily(`^(LANG|LC_[A-Z]+)$`), lazily(`^[A-Za-z0-9_.@-]*$`)},
	{lazily(`^TZ$`), lazily(`^[A-Za-z0-9_/+-]*$`)},
	{lazily(`^(NO_COLOR|CLICOLOR|COLUMNS|GIT_OPTIONAL_LOCKS|GIT_TERMINAL_PROMPT)$`), lazily(`^[0-9]*$`)},
	{lazily(`^(PAGER|GIT_PAGER)$`), lazily(`^(cat)?$`)},
	{lazily(`^IFS$`), lazily(`^[ \t\n,:;|=]*$`)}, // what read splits at
}

func (w *walker) assign(a *syntax.Assign, prefix bool, depth int) *objection {
	if a.Index != nil || a.Array != nil || a.Append || a.Name == nil {
		return object("assignments to arrays are evaluated, and may run commands").or("use a plain value")
	}
	value, o := w.value(a.Value, depth)
	if o != nil {
		return o
	}
	name := a.Name.Value
	if !prefix {
		if ownVariable(name) {
			return nil
		}
		return object("the variable %s may mean something to the shell or to a command", name).or("use a name in lower case, or the value itself")
	}
	for _, known := range environment {
		if known.name().MatchString(name) && value.exact && known.value().MatchString(value.text) {
			return nil
		}
	}
	return object("the variable %s may change what the command runs or reads", name).or("leave it out")
}

// secret refuses to read the environment of a process, which holds keys and tokens.
func secret(a arg) *objection {
	below := strings.HasPrefix(path.Clean(a.text)+"/", "/proc/")
	if below && !a.exact || a.exact && strings.Contains(a.text, "proc/") && path.Base(a.text) == "environ" {
		return object("%s holds the secrets in a process's environment", quote(name(a)))
	}
	return nil
}

// command judges a command by its name. nested counts wrappers.
func (w *walker) command(name string, args []arg, nested int) *objection {
	e := lookup(name)
	switch {
	case e == nil && w.policy.adds(name):
		return nil
	case e == nil:
		return object("%s is not on the list of commands that only read", quote(name)).or("look with ls, cat, rg, find or git")
	case nested > 3:
		return object("there are too many wrappers around the command").or("write the command itself")
	}
	if len(args) == 1 && oneOf(args[0], e.probe) || len(args) > 0 && oneOf(args[0], e.asks) {
		return nil
	}
	if e.effect != reads {
		return object("%s", e.reason(name))
	}
	for _, a := range args {
		if o := secret(a); o != nil {
			return o
		}
	}
	return w.judge(name, e, args, nested)
}

func oneOf(a arg, list string) bool {
	for word := range strings.FieldsSeq(list) {
		if a.is(word) {
			return true
		}
	}
	return false
}

// judge applies an entry to the arguments of its command or subcommand.
func (w *walker) judge(name string, e *entry, args []arg, nested int) *objection {
	if e.effect != reads {
		return object("%s", e.reason(name))
	}
	if e.open {
		return nil
	}
	if e.raw {
		return e.check(w, &call{name: name, entry: e, operands: args})
	}
	c, o := sortArgs(name, e, args)
	if o != nil {
		return o
	}
	switch {
	case e.subs != nil:
		return w.subcommand(c, nested)
	case e.wraps:
		return w.wrapped(c, nested)
	case e.need != "" && !c.has(e.need):
		return object("%s needs one of %s to only read", name, strings.Join(strings.Fields(e.need), ", "))
	}
	if e.operands != anyNumber && (e.lists == "" || !c.has(e.lists)) {
		if o := c.atMost(int(e.operands - noOperand)); o != nil {
			return o
		}
	}
	if e.check != nil {
		return e.check(w, c)
	}
	return nil
}

// atMost holds the number of operands down; one more often is what gets written.
func (c *call) atMost(limit int) *objection {
	for _, a := range c.operands {
		if a.many {
			return object("%s does more than read if it is given several operands", c.name).or("write them out")
		}
	}
	if len(c.operands) <= limit {
		return nil
	}
	if c.entry.lists != "" {
		return object("%s %s changes something", c.name, quote(name(c.operands[limit]))).or("add " + strings.Fields(c.entry.lists)[0])
	}
	return object("%s does more than read if it is given %s", c.name, quote(name(c.operands[limit]))).or("leave it out")
}

func (w *walker) subcommand(c *call, nested int) *objection {
	if c.entry.check != nil {
		if o := c.entry.check(w, c); o != nil {
			return o
		}
	}
	if len(c.operands) == 0 {
		if c.entry.alone {
			return nil
		}
		if c.entry.why != "" {
			return object("%s %s", c.name, c.entry.why)
		}
		return object("%s lacks a subcommand", c.name)
	}
	first := c.operands[0]
	if !first.exact {
		return object("the subcommand of %s is not known before it runs", c.name).or("write it out")
	}
	sub := c.entry.sub(first.text)
	if sub == nil {
		if c.entry.aliases {
			return object("%s %s is not known to only read; it may be an alias that runs anything", c.name, quote(first.text))
		}
		return object("%s %s is not known to only read", c.name, quote(first.text))
	}
	return w.judge(c.name+" "+first.text, sub, c.operands[1:], nested)
}

// wrapped judges the command that a wrapper runs.
func (w *walker) wrapped(c *call, nested int) *objection {
	if len(c.operands) <= c.entry.skip {
		return object("%s lacks the command to run", c.name)
	}
	for _, own := range c.operands[:c.entry.skip] {
		if own.many || own.mayBeOption() {
			return object("the operand %s of %s is not plain", name(own), c.name)
		}
	}
	inner := c.operands[c.entry.skip]
	if !inner.exact || !bareName().MatchString(inner.text) && inner.text != "[" {
		return object("%s runs %s, which is not the bare name of a command", c.name, name(inner))
	}
	if e := lookup(inner.text); e != nil && e.names == cdNames {
		return object("%s cannot run cd", c.name)
	}
	return w.command(inner.text, c.operands[c.entry.skip+1:], nested+1)
}
