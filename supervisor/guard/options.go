package guard

import (
	"strings"
)

// call is a command with its arguments sorted as the tool itself will sort them.
type call struct {
	name     string // with subcommands: "git log"
	entry    *entry
	options  []given
	operands []arg
}

type given struct {
	name  string // as the table has it
	value arg
}

// has tells whether one of the options of a list was given.
func (c *call) has(list string) bool {
	for _, o := range c.options {
		for name := range strings.FieldsSeq(list) {
			if o.name == name {
				return true
			}
		}
	}
	return false
}

// sortArgs splits arguments into options and operands. It objects to options that
// are not known to read, and to arguments that might turn out to be options.
func sortArgs(name string, e *entry, args []arg) (*call, *objection) {
	c := &call{name: name, entry: e}
	p := parser{call: c, spec: e.spec(), rest: args}
	for len(p.rest) > 0 {
		a := p.rest[0]
		p.rest = p.rest[1:]
		switch {
		case a.is("--"):
			if e.subs != nil {
				return nil, object("%s does not know --", name)
			}
			c.operands = append(c.operands, p.rest...)
			return c, nil
		case !a.mayBeOption(), e.tame && a.literal != "" && !a.exact, a.exact && strings.Trim(a.text, "-><=") == "":
			if e.atFile && strings.HasPrefix(a.text, "@") {
				return nil, object("%s reads more options from %s", name, quote(a.text))
			}
			c.operands = append(c.operands, a)
			if e.stops() {
				c.operands = append(c.operands, p.rest...)
				return c, nil
			}
		case a.split || a.text == "" || a.text == "-":
			return nil, p.hidden(a)
		default:
			if o := p.option(a); o != nil {
				return nil, o
			}
		}
	}
	return c, nil
}

type parser struct {
	call *call
	spec map[string]option
	rest []arg
}

func (p *parser) hidden(a arg) *objection {
	if a.literal != "" {
		return object("a file that the pattern %s matches may be taken for an option of %s", quote(a.literal), p.call.name).or("write ./" + quote(a.literal))
	}
	return object("what is not known before it runs may be taken for an option of %s", p.call.name).or("write the value out, or put it after --")
}

func (p *parser) option(a arg) *objection {
	if a.exact {
		if o, ok := p.spec[a.text]; ok && (len(a.text) == 2 || o.arity != joined || a.text[1] != '-') {
			return p.take(a.text, o, nil)
		}
	}
	switch {
	case strings.HasPrefix(a.text, "--"):
		return p.long(a)
	case p.call.entry.numbers && a.exact && isNumber(a.text[1:]):
		p.call.options = append(p.call.options, given{name: "-NUMBER", value: arg{text: a.text[1:], exact: true}})
		return nil
	default:
		return p.bundle(a)
	}
}

// long reads --name and --name=value.
func (p *parser) long(a arg) *objection {
	name, value, assigned := strings.Cut(a.text, "=")
	if !assigned && !a.exact {
		return p.hidden(a)
	}
	o, ok := p.spec[name]
	if !ok {
		if name, ok = p.complete(name); !ok {
			return p.unknown(name)
		}
		o = p.spec[name]
	}
	if !assigned {
		return p.take(name, o, nil)
	}
	if o.arity == none && o.effect == reads {
		return object("%s %s takes no value", p.call.name, name)
	}
	return p.take(name, o, &arg{text: value, exact: a.exact, many: a.many})
}

// complete finds the options that an abbreviation may stand for. If they differ in
// what they do, the worst of them counts.
func (p *parser) complete(short string) (string, bool) {
	if !p.call.entry.abbreviations || len(short) < 3 {
		return short, false
	}
	var found string
	for name, o := range p.spec {
		if !strings.HasPrefix(name, short) {
			continue
		}
		known, ok := p.spec[found]
		switch {
		case !ok, o.effect > known.effect, o.effect == known.effect && name < found && o.arity == known.arity:
			found = name
		case o.effect == reads && known.effect == reads && o.arity != known.arity:
			return short, false
		}
	}
	if found == "" {
		return short, false
	}
	return found, true
}

// bundle reads -abc and -nVALUE.
func (p *parser) bundle(a arg) *objection {
	for i := 1; i < len(a.text); i++ {
		name := "-" + a.text[i:i+1]
		o, ok := p.spec[name]
		if !ok {
			return p.unknown(quote(a.text))
		}
		var value *arg
		if o.arity != none && (i+1 < len(a.text) || !a.exact) {
			value = &arg{text: a.text[i+1:], exact: a.exact, many: a.many}
		}
		if found := p.take(name, o, value); found != nil {
			return found
		}
		if o.arity != none {
			return nil
		}
	}
	if !a.exact {
		return p.hidden(a)
	}
	return nil
}

// take notes an option. A value that is a word of its own must not look like an
// option, so that nothing hangs on whether the option really takes one.
func (p *parser) take(name string, o option, value *arg) *objection {
	if o.effect != reads {
		return object("%s %s %s", p.call.name, name, o.effect).or("leave the option out")
	}
	if o.arity == required && value == nil {
		if len(p.rest) == 0 {
			return object("%s %s lacks its value", p.call.name, name)
		}
		next := p.rest[0]
		p.rest = p.rest[1:]
		if next.split || next.many || next.exact && next.mayBeOption() && !isNumber(next.text[1:]) {
			return object("the value of %s %s is not plain", p.call.name, name).or("join it to the option")
		}
		value = &next
	}
	g := given{name: name, value: arg{exact: true}}
	if value != nil {
		g.value = *value
	}
	p.call.options = append(p.call.options, g)
	return nil
}

func (p *parser) unknown(option string) *objection {
	return object("the option %s of %s is not known to only read", quote(option), p.call.name).or("leave it out")
}
