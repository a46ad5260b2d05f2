package lanes

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/shell"
)

// Command is how pi is started: a program and the words that come before the
// lane's own arguments.
type Command struct {
	Path string   // absolute
	Args []string // for example the path of pi's script when Path is node
	// Untrusting is true for a pi that knows --no-approve. An older pi refuses
	// the flag, so it is sent only when the installed version is known to be
	// new (Pi fact §2).
	Untrusting bool
}

// CommandError says why pi cannot be started. Its text is for the user.
type CommandError struct {
	Words  string // as given
	Reason string // what is wrong, in plain words
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("cannot start pi with %q: %s; install pi or name the program with --pi or PILOTHOUSE_PI", e.Words, e.Reason)
}

// ParseCommand turns the words of --pi into a command. A string that is a file
// as a whole is taken as it is, so a path with spaces needs no quotes. The
// program is looked up on the PATH of environ, the environment that the
// child will get. Paths are made absolute, because the child works elsewhere:
// the program's, and that of a script after it. Errors are *CommandError.
func ParseCommand(words string, environ []string) (Command, error) {
	fields := []string{words}
	if _, err := os.Stat(words); err != nil {
		fields, err = shell.Fields(words, func(name string) string { return lookupEnv(environ, name) })
		if err != nil {
			return Command{}, &CommandError{words, "its quoting is not understood (" + err.Error() + ")"}
		}
	}
	if len(fields) == 0 || strings.TrimSpace(fields[0]) == "" {
		return Command{}, &CommandError{words, "it is empty"}
	}
	path, err := findProgram(fields[0], lookupEnv(environ, "PATH"))
	if err != nil {
		return Command{}, &CommandError{words, err.Error()}
	}
	cmd := Command{Path: path}
	for _, arg := range fields[1:] {
		cmd.Args = append(cmd.Args, absoluteScript(arg))
	}
	cmd.Untrusting = packageName(append([]string{path}, cmd.Args...)) == newGenerationPackage
	return cmd, nil
}

// absoluteScript makes the path of a script absolute and leaves every other word
// alone. A lane of a reference runs in the reference's directory, and a script
// of that name there must not be taken for pi's.
func absoluteScript(word string) string {
	switch filepath.Ext(word) {
	case ".js", ".mjs", ".cjs", ".ts":
	default:
		return word
	}
	abs, err := filepath.Abs(word)
	if err != nil {
		return word
	}
	if info, err := os.Stat(abs); err != nil || !info.Mode().IsRegular() {
		return word
	}
	return abs
}

// newGenerationPackage is the npm name of the pi generation that knows
// --no-approve (measured with 1.6.0).
const newGenerationPackage = "@earendil-works/pi-coding-agent"

// packageName finds the npm package that a program or its script belongs to,
// without running it: `pi --version` would cost as much as a small lane.
func packageName(files []string) string {
	for _, file := range files {
		target, err := filepath.EvalSymlinks(file)
		if err != nil {
			continue
		}
		for dir := filepath.Dir(target); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			data, err := os.ReadFile(filepath.Join(dir, "package.json"))
			if err != nil {
				continue
			}
			var manifest struct{ Name string }
			if json.Unmarshal(data, &manifest) == nil && strings.HasSuffix(manifest.Name, "/pi-coding-agent") {
				return manifest.Name
			}
		}
	}
	return ""
}

// findProgram resolves a program name as a shell would and explains a failure.
func findProgram(name, path string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		abs, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		return abs, checkProgram(abs)
	}
	var blocked error // the first that is there but is no program tells more than that there is none
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(dir, name)
		if !filepath.IsAbs(candidate) { // the workspace must not decide which pi runs
			continue
		}
		if _, err := os.Stat(candidate); err != nil {
			continue
		}
		err := checkProgram(candidate)
		if err == nil {
			return candidate, nil
		}
		if blocked == nil {
			blocked = err
		}
	}
	if blocked != nil {
		return "", blocked
	}
	return "", fmt.Errorf("there is no program %q on the PATH", name)
}

func checkProgram(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errors.New(path + " does not exist")
	case err != nil:
		return err
	case info.IsDir():
		return errors.New(path + " is a directory")
	case info.Mode()&0o111 == 0:
		return errors.New(path + " is not executable")
	case info.Size() == 0:
		return errors.New(path + " is an empty file")
	}
	return nil
}

// lookupEnv returns the last value of name, as a child would see it.
func lookupEnv(environ []string, name string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(environ[i], name+"="); ok {
			return value
		}
	}
	return ""
}
