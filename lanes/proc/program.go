package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// errNotOnPath is the cause of a StartError for a bare name that no folder of PATH holds.
var errNotOnPath = fmt.Errorf("not on PATH: %w", os.ErrNotExist)

// locate finds the program file of spec. A name without a slash is looked up on
// the PATH of the child's environment, since that is the one its user sees;
// relative folders on PATH are passed over. Whatever else is wrong with the
// file, the kernel finds at exec and explain puts into words.
func locate(spec Spec) (string, error) {
	if spec.Path == "" {
		return "", &StartError{Path: `""`, Reason: "no program is named", Err: os.ErrInvalid}
	}
	if info, err := os.Stat(spec.Dir); spec.Dir != "" && err != nil {
		return "", &StartError{Path: spec.Path, Reason: fmt.Sprintf("its working directory %s cannot be used: %v", spec.Dir, plain(err)), Err: err}
	} else if spec.Dir != "" && !info.IsDir() {
		return "", &StartError{Path: spec.Path, Reason: fmt.Sprintf("its working directory %s is not a directory", spec.Dir), Err: syscall.ENOTDIR}
	}
	if strings.ContainsRune(spec.Path, filepath.Separator) {
		return spec.Path, nil
	}
	blocked := ""
	for _, dir := range filepath.SplitList(lookup(spec.Env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, spec.Path)
		info, err := os.Stat(file)
		switch {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 != 0:
			return file, nil
		case blocked == "":
			blocked = file
		}
	}
	if blocked != "" {
		return "", &StartError{Path: spec.Path, Reason: fmt.Sprintf("%s is not executable; chmod +x it, or name another program", blocked), Err: syscall.EACCES}
	}
	return "", &StartError{Path: spec.Path, Reason: "no folder on PATH holds it; install it or give its full path", Err: errNotOnPath}
}

// explain turns the failure of a start into a StartError.
func explain(spec Spec, file string, err error) *StartError {
	return &StartError{Path: spec.Path, Reason: reason(spec, file, err), Err: err}
}

func reason(spec Spec, file string, err error) string {
	onDisk := file
	if !filepath.IsAbs(file) {
		onDisk = filepath.Join(spec.Dir, file)
	}
	info, statErr := os.Stat(onDisk)
	switch {
	case errors.Is(err, syscall.E2BIG):
		return "its arguments and environment are too long for the system; pass long text on stdin"
	case errors.Is(err, syscall.EAGAIN):
		return "the limit on processes is reached (ulimit -u)"
	case errors.Is(err, syscall.ENOMEM):
		return "there is not enough memory"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "there are too many open files (ulimit -n)"
	case errors.Is(err, syscall.ETXTBSY):
		return "the file is being written at the moment"
	case errors.Is(err, syscall.EINVAL) && holdsNUL(spec):
		return "an argument or environment variable holds a NUL byte"
	case statErr != nil:
		return plain(statErr)
	case info.IsDir():
		return "it is a directory, not a program"
	case info.Mode().IsRegular() && info.Size() == 0:
		return "the file is empty"
	case info.Mode()&0o111 == 0:
		return "it is not executable; chmod +x it, or name another program"
	case errors.Is(err, syscall.ENOEXEC):
		return "it is neither a program for this system nor a script with a #! line"
	case errors.Is(err, os.ErrNotExist):
		if interpreter := shebang(onDisk); interpreter != "" {
			return fmt.Sprintf("its interpreter %s does not exist", interpreter)
		}
		return "the loader that it needs does not exist"
	}
	return plain(err)
}

// plain is the text of the innermost cause, without the operation and path that
// the sentence around it already tells.
func plain(err error) string {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// shebang returns the interpreter that a script's first line names.
func shebang(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	rest, ok := strings.CutPrefix(line, "#!")
	if err != nil && !errors.Is(err, io.EOF) || !ok {
		return ""
	}
	if words := strings.Fields(rest); len(words) > 0 {
		return words[0]
	}
	return ""
}

func holdsNUL(spec Spec) bool {
	if strings.ContainsRune(spec.Path, 0) {
		return true
	}
	for _, list := range [][]string{spec.Args, spec.Env} {
		for _, s := range list {
			if strings.ContainsRune(s, 0) {
				return true
			}
		}
	}
	return false
}
