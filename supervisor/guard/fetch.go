package guard

import (
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A run that is planned with references has to get them first (seed: References). What
// is known below does nothing but fetch them into a directory that the policy names for
// that: everything is written out, and no option is there that could run something or
// write elsewhere.

// fetchers take options from a list, and say with the rest where they write.
var fetchers = map[string]struct {
	flags   string // without a value
	valued  string // with a value in the next argument
	written func(values map[string]string, operands []string) (path string, ok bool)
}{
	"git clone": {
		flags:  "--single-branch --no-single-branch --no-tags --no-checkout -n --quiet -q --progress --bare",
		valued: "--depth --branch -b --filter",
		written: func(_ map[string]string, operands []string) (string, bool) {
			if len(operands) != 2 || !remote(operands[0]) {
				return "", false
			}
			return operands[1], true
		},
	},
	"curl": {
		flags:  "-f -s -S -L --fail --silent --show-error --location -fsSL -sSL -fsL -sL -LsS -fL",
		valued: "-o --output --max-time -m --retry",
		written: func(values map[string]string, operands []string) (string, bool) {
			path, long := values["-o"], values["--output"]
			if path == "" {
				path, long = long, ""
			}
			return path, long == "" && len(operands) == 1 && web(operands[0]) && path != "-"
		},
	},
	"wget": {
		flags:  "-q --quiet -nv --no-verbose",
		valued: "-O --tries -t --timeout -T",
		written: func(values map[string]string, operands []string) (string, bool) {
			return values["-O"], len(operands) == 1 && web(operands[0]) && values["-O"] != "-"
		},
	},
	"mkdir": {
		flags: "-p --parents",
		written: func(_ map[string]string, operands []string) (string, bool) {
			if len(operands) != 1 {
				return "", false
			}
			return operands[0], true
		},
	},
}

// fetches tells whether a command only fetches something into a directory that is
// meant for that.
func (w *walker) fetches(name string, args []arg) bool {
	if len(w.policy.Downloads) == 0 {
		return false
	}
	if name == "git" && len(args) > 0 && args[0].is("clone") {
		name, args = "git clone", args[1:]
	}
	fetcher, known := fetchers[name]
	if !known {
		return false
	}
	values, operands := map[string]string{}, []string(nil)
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.exact || a.many || a.text == "":
			return false
		case a.text[0] != '-':
			operands = append(operands, a.text)
		case oneOf(a, fetcher.flags):
		case oneOf(a, fetcher.valued) && i+1 < len(args) && args[i+1].exact && !args[i+1].many && !strings.HasPrefix(args[i+1].text, "-"):
			if _, twice := values[a.text]; twice {
				return false
			}
			i++
			values[a.text] = args[i].text
		default:
			return false
		}
	}
	path, ok := fetcher.written(values, operands)
	if !ok || strings.HasPrefix(path, "@") || strings.HasPrefix(path, "~") || w.moves && !filepath.IsAbs(path) {
		return false // what write would make of the path, a shell would not
	}
	return path != "" && w.policy.below(w.policy.Downloads, path) == nil
}

// web tells whether an address is one of the web.
func web(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}

// remote tells whether git gets a repository from another machine in a way that starts
// nothing on this one but ssh.
func remote(address string) bool {
	if web(address) || strings.HasPrefix(address, "git://") || strings.HasPrefix(address, "ssh://") {
		return !strings.Contains(address, "://-")
	}
	return strings.HasPrefix(address, "git@") && !strings.Contains(address, "::")
}

// moves tells whether a text changes the directory that relative paths start from.
func moves(file *syntax.File) bool {
	found := false
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok {
			for _, word := range c.Args {
				switch word.Lit() {
				case cdNames, "pushd", "popd":
					found = true
				}
			}
		}
		return true
	})
	return found
}
