package guard

import (
	"strings"
)

// awkProgram finds the program of awk and reads it.
func awkProgram(_ *walker, c *call) *objection {
	if len(c.operands) == 0 {
		return nil
	}
	if !c.operands[0].exact {
		return object("the program of awk is not known before it runs").or("write it out, and pass values with -v")
	}
	a := awk{text: c.operands[0].text}
	return a.program()
}

// awk reads the tokens of a program, as far as needed to be sure what is a string,
// a pattern or an operator. Output goes elsewhere only by >, | and system; files and
// commands are read only by getline; gawk adds @ and |&.
type awk struct {
	text string
	at   int
	// printing: inside print or printf, where > redirects.
	printing bool
	// operand: a value may begin here, so a slash begins a pattern.
	operand bool
	// unsure: a slash here could be either.
	unsure bool
}

func (a *awk) odd() *objection {
	return object("the program of awk is not understood near %s", quote(a.text[min(a.at, len(a.text)):])).or("use a simple program")
}

func (a *awk) program() *objection {
	a.operand = true
	for a.at < len(a.text) {
		c := a.text[a.at]
		switch {
		case c == ' ', c == '\t':
			a.at++
		case c == '\n':
			a.at++
			a.operand, a.unsure = true, false
		case c == '\\':
			return a.odd()
		case c == '#':
			for a.at < len(a.text) && a.text[a.at] != '\n' {
				a.at++
			}
		case c == '"':
			if !a.quoted('"') {
				return a.odd()
			}
			a.operand, a.unsure = false, false
		case c == '/' && a.unsure:
			return a.odd()
		case c == '/' && a.operand:
			if !a.quoted('/') {
				return a.odd()
			}
			a.operand = false
		case isLetter(c):
			if o := a.word(); o != nil {
				return o
			}
		case isDigit(c), c == '.':
			for a.at < len(a.text) && (isDigit(a.text[a.at]) || a.text[a.at] == '.') {
				a.at++
			}
			if a.at < len(a.text) && isLetter(a.text[a.at]) { // where a number ends that goes on with letters, awks differ
				return a.odd()
			}
			a.operand, a.unsure = false, false
		default:
			if o := a.operator(c); o != nil {
				return o
			}
		}
	}
	return nil
}

// quoted reads a string or a pattern. A slash in brackets is refused: awks differ
// about it.
func (a *awk) quoted(end byte) bool {
	for a.at++; a.at < len(a.text); a.at++ {
		switch c := a.text[a.at]; {
		case c == end:
			a.at++
			return true
		case c == '\n':
			return false
		case c == '\\':
			a.at++
			if a.at < len(a.text) && a.text[a.at] == '\n' {
				return false
			}
		case c == '[' && end == '/':
			closing := strings.IndexByte(a.text[a.at+1:], ']')
			if closing < 0 || strings.ContainsAny(a.text[a.at+1:a.at+1+closing], "/\\[") {
				return false
			}
		}
	}
	return false
}

func (a *awk) word() *objection {
	from := a.at
	for a.at < len(a.text) && (isLetter(a.text[a.at]) || isDigit(a.text[a.at])) {
		a.at++
	}
	a.operand, a.unsure = false, false
	switch word := a.text[from:a.at]; word {
	case "system":
		return object("system in the program of awk runs a command")
	case "getline":
		return object("getline in the program of awk reads a file or a command").or("give the file as an operand")
	case "ENVIRON", "SYMTAB", "PROCINFO":
		return object("%s in the program of awk reaches the environment, which holds secrets", word)
	case "print", "printf":
		a.printing, a.operand = true, true
	case "return", "in", "case", "else", "do", "exit":
		a.operand = true
	}
	return nil
}

func (a *awk) operator(c byte) *objection {
	next := byte(0)
	if a.at+1 < len(a.text) {
		next = a.text[a.at+1]
	}
	a.at++
	a.operand, a.unsure = true, false
	switch c {
	case '>':
		if a.printing {
			return object("> after print in the program of awk writes a file").or("compare before print, not in it")
		}
	case '|':
		if next != '|' {
			return object("| in the program of awk runs a command").or("pipe after awk")
		}
		a.at++
	case ';', '{', '}':
		a.printing = false
	case ')', ']':
		// After a condition a pattern may follow, after a value a division.
		a.operand, a.unsure = false, c == ')'
	case '+', '-':
		if next == c {
			a.at++
			a.unsure = true
		}
	case '$', '(', '[', ',', '!', '~', '<', '=', '*', '%', '^', '?', ':', '&', '/':
	default:
		a.at--
		return a.odd()
	}
	return nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
