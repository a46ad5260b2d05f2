package guard

import (
	"strings"
)

// sedScript finds the script of sed among its arguments and reads it.
func sedScript(_ *walker, c *call) *objection {
	var scripts []string
	for _, o := range c.options {
		if o.name != "-e" && o.name != "--expression" {
			continue
		}
		if !o.value.exact {
			return unknownScript
		}
		scripts = append(scripts, o.value.text)
	}
	if scripts == nil {
		if len(c.operands) == 0 {
			return nil
		}
		if !c.operands[0].exact {
			return unknownScript
		}
		scripts = append(scripts, c.operands[0].text)
	}
	s := sed{text: strings.Join(scripts, "\n")}
	return s.script()
}

var unknownScript = &objection{"the script of sed is not known before it runs", "write it out"}

// sed reads a script of GNU sed. It knows each command that prints or edits the text
// on its way, and refuses the rest: w, W and the flag w write files, e and the flag e
// run commands.
type sed struct {
	text string
	at   int
}

func (s *sed) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *sed) skip(set string) {
	for s.at < len(s.text) && strings.IndexByte(set, s.text[s.at]) >= 0 {
		s.at++
	}
}

func (s *sed) odd() *objection {
	return object("the script of sed is not understood near %s", quote(s.text[min(s.at, len(s.text)):])).or("use a simple script such as 1,40p or s/a/b/")
}

func (s *sed) script() *objection {
	for {
		s.skip(" \t\n;")
		if s.at >= len(s.text) {
			return nil
		}
		if !s.addresses() {
			return s.odd()
		}
		s.skip(" \t")
		for s.peek() == '!' {
			s.at++
			s.skip(" \t")
		}
		if o := s.command(); o != nil {
			return o
		}
	}
}

// addresses reads none, one or two addresses.
func (s *sed) addresses() bool {
	found, ok := s.address()
	if !ok || !found {
		return ok
	}
	s.skip(" \t")
	if s.peek() != ',' {
		return true
	}
	s.at++
	s.skip(" \t")
	if c := s.peek(); c == '+' || c == '~' {
		s.at++
		return s.number()
	}
	found, ok = s.address()
	return found && ok
}

func (s *sed) address() (found, ok bool) {
	switch c := s.peek(); {
	case c >= '0' && c <= '9':
		s.number()
		if s.peek() == '~' {
			s.at++
			return true, s.number()
		}
		return true, true
	case c == '$':
		s.at++
		return true, true
	case c == '/':
		s.at++
		ok = s.delimited('/', true)
	case c == '\\' && s.at+1 < len(s.text):
		end := s.text[s.at+1]
		s.at += 2
		ok = plainDelimiter(end) && s.delimited(end, true)
	default:
		return false, true
	}
	for c := s.peek(); c == 'I' || c == 'M'; c = s.peek() {
		s.at++
	}
	return true, ok
}

func (s *sed) number() bool {
	from := s.at
	s.skip("0123456789")
	return s.at > from
}

// plainDelimiter keeps to the marks that no sed reads in another way.
func plainDelimiter(c byte) bool { return strings.IndexByte("/|,#@!%:;=~_+", c) >= 0 }

// delimited reads up to the next delimiter. In a pattern a delimiter inside brackets
// does not count; brackets that seds read differently are refused.
func (s *sed) delimited(end byte, pattern bool) bool {
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c == end:
			return true
		case c == '\\':
			if s.at < len(s.text) && s.text[s.at] == '\n' && pattern {
				return false
			}
			s.at++
		case c == '\n' && pattern:
			return false
		case c == '[' && pattern:
			if !s.brackets(end) {
				return false
			}
		}
	}
	return false
}

// brackets reads a bracket expression, up to its end. If the delimiter is in it, the
// expression has to be one that all seds end at the same place.
func (s *sed) brackets(end byte) bool {
	from := s.at
	if s.peek() == '^' {
		s.at++
	}
	if s.peek() == ']' {
		s.at++
	}
	for s.at < len(s.text) && s.text[s.at] != ']' {
		if s.text[s.at] == '[' && s.at+1 < len(s.text) && strings.IndexByte(":.=", s.text[s.at+1]) >= 0 {
			class := strings.Index(s.text[s.at+2:], string(s.text[s.at+1])+"]")
			if class < 0 {
				return false
			}
			s.at += class + 4
			continue
		}
		s.at++
	}
	if s.at >= len(s.text) {
		return false
	}
	inside := strings.TrimPrefix(s.text[from:s.at], "^")
	s.at++
	return strings.IndexByte(inside, end) < 0 || inside != "" && inside[0] != ']' && !strings.ContainsAny(inside, "[\\\n")
}

func (s *sed) command() *objection {
	if s.at >= len(s.text) {
		return s.odd()
	}
	c := s.text[s.at]
	s.at++
	switch c {
	case '{':
		return nil
	case '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		return s.end()
	case 'q', 'Q', 'l', 'L':
		s.skip(" \t")
		s.skip("0123456789")
		return s.end()
	case 'b', 't', 'T', ':':
		s.skip(" \t")
		s.skip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
		return s.end()
	case '#':
		s.line()
		return nil
	case 'a', 'i', 'c':
		return s.added()
	case 'r', 'R':
		s.line()
		return nil
	case 's':
		return s.substitute()
	case 'y':
		delimiter := s.peek()
		s.at++
		if !plainDelimiter(delimiter) || !s.delimited(delimiter, false) || !s.delimited(delimiter, false) {
			return s.odd()
		}
		return s.end()
	case 'w', 'W':
		return object("the command %c in the script of sed writes a file", c).or("let it print")
	case 'e':
		return object("the command e in the script of sed runs a command")
	default:
		s.at--
		return s.odd()
	}
}

// end wants the end of a command.
func (s *sed) end() *objection {
	s.skip(" \t")
	switch s.peek() {
	case 0, ';', '\n', '}', '#':
		return nil
	}
	return s.odd()
}

func (s *sed) line() {
	if end := strings.IndexByte(s.text[s.at:], '\n'); end >= 0 {
		s.at += end + 1
		return
	}
	s.at = len(s.text)
}

// added reads the text of a, i and c: the rest of the line, or, after a backslash,
// the next one. Continued texts are refused, since seds differ about them.
func (s *sed) added() *objection {
	s.skip(" \t")
	if s.peek() == '\\' {
		s.at++
		s.skip(" \t")
		if s.peek() == '\n' {
			s.at++
		}
	}
	from := s.at
	s.line()
	if strings.Contains(s.text[from:s.at], `\`) || s.at == from {
		s.at = from
		return s.odd()
	}
	return nil
}

func (s *sed) substitute() *objection {
	delimiter := s.peek()
	s.at++
	if !plainDelimiter(delimiter) || !s.delimited(delimiter, true) || !s.delimited(delimiter, false) {
		return s.odd()
	}
	for {
		switch c := s.peek(); {
		case c == 'w':
			return object("the flag w in the script of sed writes a file").or("let it print")
		case c == 'e':
			return object("the flag e in the script of sed runs a command")
		case c != 0 && strings.IndexByte("gpiImM0123456789", c) >= 0:
			s.at++
		default:
			return s.end()
		}
	}
}
