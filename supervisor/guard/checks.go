package guard

import (
	"regexp"
	"strings"
)

// noPlus refuses +COMMAND, which pagers run at the start.
func noPlus(_ *walker, c *call) *objection {
	for _, a := range c.operands {
		if strings.HasPrefix(a.text, "+") || a.text == "" && !a.exact && !a.plain {
			return object("%s runs an operand that begins with +", c.name).or("leave it out")
		}
	}
	return nil
}

// plusOnly is the rule of date: an operand that is not a format sets the clock.
func plusOnly(_ *walker, c *call) *objection {
	for _, a := range c.operands {
		if !strings.HasPrefix(a.text, "+") || a.split {
			return object("%s %s sets the clock", c.name, name(a)).or("give a format that begins with +")
		}
	}
	return nil
}

// batPages refuses the pager, and the operand that writes the cache.
func batPages(_ *walker, c *call) *objection {
	for _, o := range c.options {
		if o.name == "--paging" && !oneOf(o.value, "never auto") {
			return object("%s --paging runs a pager", c.name).or("use --paging=never")
		}
	}
	if len(c.operands) > 0 && (c.operands[0].is("cache") || !c.operands[0].exact && c.operands[0].text == "") {
		return object("%s cache writes its cache", c.name).or("write ./cache for a file of that name")
	}
	return nil
}

var goVariable = lazily(`^[A-Z][A-Z0-9_]+$`)

// goVariables wants names: to show all variables, or the flags of the C compiler, go
// makes its build cache.
func goVariables(_ *walker, c *call) *objection {
	for _, a := range c.operands {
		if !a.exact || !goVariable().MatchString(a.text) || a.text == "GOGCCFLAGS" {
			return object("go env %s may write the build cache", name(a)).or("name variables such as GOPATH")
		}
	}
	if len(c.operands) == 0 {
		return object("go env without names writes the build cache").or("name variables such as GOPATH")
	}
	return nil
}

var address = lazily(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// localOperands refuses addresses where a file is expected.
func localOperands(_ *walker, c *call) *objection {
	for _, a := range c.operands {
		if address().MatchString(a.text) || !a.exact && !strings.Contains(a.text, "/") {
			return object("%s may open the network for %s", c.name, name(a)).or("name a file")
		}
	}
	return nil
}

// oneMode keeps listing and testing apart from decompressing: the tools differ in
// which of the two counts.
func oneMode(_ *walker, c *call) *objection {
	if c.has("-l --list -t --test") && c.has("-d --decompress --uncompress") {
		return object("%s may decompress in place with these options", c.name).or("leave -d out")
	}
	return nil
}

// psFields refuses the BSD option e, which prints the environment of processes.
func psFields(_ *walker, c *call) *objection {
	for i, a := range c.operands {
		switch {
		case !a.exact:
			return object("what is not known before it runs may be an option of ps").or("write it out")
		case strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.Contains(strings.SplitN(a.text, "o", 2)[0], "E"):
			return object("ps -E prints the environment of processes on some systems, which holds secrets").or("use ps aux")
		case strings.HasPrefix(a.text, "-"), i > 0 && takesValue(c.operands[i-1].text), isNumber(a.text):
		case strings.Contains(strings.SplitN(a.text, "o", 2)[0], "e"), strings.Contains(a.text, "E"):
			return object("ps %s prints the environment of processes, which holds secrets", quote(a.text)).or("use ps aux")
		}
	}
	return nil
}

func takesValue(option string) bool {
	return strings.HasPrefix(option, "-") && (strings.HasPrefix(option, "--") || strings.ContainsAny(option[len(option)-1:], "opuUgGtCqs")) || option == "o" || strings.HasSuffix(option, "o")
}

// ipShows allows OBJECT [show …]: ip takes abbreviations, and most other verbs set
// something.
func ipShows(_ *walker, c *call) *objection {
	for i, a := range c.operands {
		if !a.exact {
			return object("the operands of ip are not known before it runs").or("write them out")
		}
		switch {
		case i == 0 && !oneOf(a, "a addr address l link r route n neigh neighbour rule maddress mroute tunnel"):
			return object("ip %s is not known to only read", quote(a.text)).or("use ip addr, link, route, neigh or rule")
		case i == 1 && !oneOf(a, "show list ls get"):
			return object("ip %s %s is not known to only read", c.operands[0].text, quote(a.text)).or("use show")
		}
	}
	if len(c.operands) == 0 {
		return object("ip lacks an object").or("use ip addr")
	}
	return nil
}

func sysctlReads(_ *walker, c *call) *objection {
	for _, a := range c.operands {
		if !a.exact || strings.Contains(a.text, "=") {
			return object("sysctl %s sets a value", name(a)).or("name the key alone")
		}
	}
	return nil
}

// manPages wants names of pages: a file is formatted with what it asks for itself.
func manPages(_ *walker, c *call) *objection {
	for _, a := range c.operands {
		if !a.exact || strings.Contains(a.text, "/") {
			return object("man formats the file %s", name(a)).or("name a page")
		}
	}
	return nil
}

// readNames lets read set variables of the text only. A subscript in a name would be
// evaluated.
func readNames(_ *walker, c *call) *objection {
	for _, a := range c.operands {
		if !a.exact || !ownVariable(a.text) {
			return object("read sets %s, which may mean something to the shell", name(a)).or("use names in lower case")
		}
	}
	return nil
}

// setOptions allows the options that end a script early.
func setOptions(_ *walker, c *call) *objection {
	if len(c.operands) == 0 {
		return object("set prints all variables, which hold secrets")
	}
	for i := 0; i < len(c.operands); i++ {
		a := c.operands[i]
		switch {
		case oneOf(a, "-e -u -eu -ue +e +u"):
		case oneOf(a, "-o -eo -uo -euo -ueo +o") && i+1 < len(c.operands) && oneOf(c.operands[i+1], "pipefail errexit nounset"):
			i++
		default:
			return object("set %s changes the state of the shell", name(a)).or("leave it out")
		}
	}
	return nil
}

// printfFormat refuses %n, which assigns to a variable that the next argument names.
func printfFormat(_ *walker, c *call) *objection {
	if len(c.operands) == 0 {
		return nil
	}
	format := c.operands[0]
	if !format.exact {
		return object("the format of printf is not known before it runs").or("write it out, with %%s for the value")
	}
	rest := format.text
	for {
		at := strings.IndexByte(rest, '%')
		if at < 0 {
			return nil
		}
		rest = strings.TrimLeft(rest[at+1:], "#0- +'123456789.*hlLjzt")
		switch {
		case rest == "":
			return nil
		case rest[0] == 'n':
			return object("%%n in the format of printf sets a variable").or("leave it out")
		}
		rest = rest[1:]
	}
}

// Words of a program that reach outside of its input; .env and "env" are keys.
var (
	jqOutside = lazily(`(^|[^.A-Za-z0-9_$])(env|get_search_list|import|include)\b|\$ENV`)
	yqOutside = lazily(`(^|[^.A-Za-z0-9_$])(env|strenv|envsubst|load|load_[a-z]+|system)\b`)
)

// strings of a program, which cannot hide code except by interpolation.
var plainString = lazily(`"[^"\\]*"`)

// jqProgram refuses a program that reads the environment. It can do nothing else.
func jqProgram(_ *walker, c *call) *objection {
	return filterProgram(c, c.operands, jqOutside())
}

func yqProgram(_ *walker, c *call) *objection {
	operands := c.operands
	if len(operands) > 0 && oneOf(operands[0], "e eval ea eval-all") {
		operands = operands[1:]
	}
	if len(operands) > 0 && oneOf(operands[0], "shell-completion completion help") {
		return object("yq %s is not needed to read", operands[0].text)
	}
	return filterProgram(c, operands, yqOutside())
}

func filterProgram(c *call, operands []arg, outside *regexp.Regexp) *objection {
	if len(operands) == 0 {
		return nil
	}
	program := operands[0]
	if program.literal == "" && !program.exact {
		return object("the program of %s is not known before it runs", c.name).or("write it out, and pass values with --arg")
	}
	text := plainString().ReplaceAllString(program.literal, `""`)
	if outside.MatchString(text) {
		return object("the program of %s reads the environment, which holds secrets, or other files", c.name).or("leave that out")
	}
	return nil
}
