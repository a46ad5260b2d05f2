package guard

import (
	"strings"
)

// Policy is what verdicts depend on beside the call itself. The zero value judges
// shell commands with the built-in table and lets nothing be written.
type Policy struct {
	// Workspace is the absolute path of the repository that is planned for. Git is
	// kept inside it, since git obeys the configuration of the directory it is
	// started for. Empty: only relative directories count as inside.
	Workspace string
	// Dir is the absolute directory in which tools run; empty means Workspace.
	Dir string
	// Home is what ~ stands for in a path to write; empty blocks such paths.
	Home string
	// Planning are the absolute directories in which write and edit may work
	// (spec: execution 5.7).
	Planning []string
	// Links finds out where paths lead; nil means that nothing may be written.
	Links Links
	// Downloads are the absolute directories into which a command may fetch what is to
	// be read; by default nothing is fetched.
	Downloads []string
	// WaysOut is the sentence that ends every blocking reason; by default the one about
	// plan mode.
	WaysOut string
	// Allow names further commands of the project that only read. They count where
	// the table does not know the name; they never override it. [Policy.Refused]
	// tells which of them do not count.
	Allow []string
}

var bareName = lazily(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// Refused lists those names of p.Allow that are not taken, each with the reason.
func (p Policy) Refused() map[string]string {
	refused := map[string]string{}
	for _, name := range p.Allow {
		if why := refuseAddition(name); why != "" {
			refused[name] = why
		}
	}
	return refused
}

func (p Policy) adds(name string) bool {
	for _, added := range p.Allow {
		if added == name {
			return refuseAddition(name) == ""
		}
	}
	return false
}

// versioned is the version at the end of a program's name: python3.11, gcc-12.
var versioned = lazily(`[-.0-9]+$`)

// cmdlet is the verb of a PowerShell command; almost all of them change something,
// and those that do not are out of scope.
var cmdlet = lazily(`^[A-Z][a-z]+-[A-Z]`)

func refuseAddition(name string) string {
	switch {
	case !bareName().MatchString(name):
		return "it is not a bare command name"
	case shellWords[name]:
		return "it is a word of the shell"
	case cmdlet().MatchString(name):
		return "PowerShell is out of scope"
	}
	for _, known := range []string{name, strings.ToLower(name), versioned().ReplaceAllString(strings.ToLower(name), "")} {
		if e := lookup(known); e != nil {
			if e.effect != reads {
				return e.reason(known)
			}
			return known + " is in the built-in table already"
		}
	}
	return ""
}

// shellWords are the reserved words of bash and POSIX.
var shellWords = words(`if then elif else fi do done case esac while until for in function select time coproc`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(list) {
		set[word] = true
	}
	return set
}
