package guard

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// Links is what the guard has to know of the file system.
type Links interface {
	// Lstat tells about a path without following it; a missing one matches
	// fs.ErrNotExist.
	Lstat(path string) (fs.FileInfo, error)
	// Readlink returns where a symbolic link leads.
	Readlink(path string) (string, error)
}

// maxLinks that one path may lead through, as in the kernel.
const maxLinks = 40

// writable objects unless path leads into a planning directory.
func (p Policy) writable(path string) *objection { return p.below(p.Planning, path) }

// below objects unless path leads into one of some directories. What does not exist yet is judged by its deepest existing
// parent. Between the verdict and the write a link can still be exchanged: this is a
// guardrail, not a sandbox.
func (p Policy) below(roots []string, path string) *objection {
	for _, r := range path {
		if r < ' ' || r == 0x7f || r > '~' && unseen(r) {
			return object("the path holds a character that cannot be seen").or("use a plain name")
		}
	}
	path = strings.TrimPrefix(path, "@") // as the tools do
	switch {
	case path == "":
		return object("the path is empty")
	case p.Links == nil:
		return object("where the path leads cannot be checked here")
	case path == "~" || strings.HasPrefix(path, "~/"):
		if p.Home == "" {
			return object("the home directory is not known").or("use an absolute path")
		}
		path = p.Home + path[1:]
	case path[0] == '~':
		return object("~USER in a path is not understood").or("use an absolute path")
	case address().MatchString(path):
		return object("the path is an address").or("use a plain path")
	}
	start := p.Dir
	if start == "" {
		start = p.Workspace
	}
	if !filepath.IsAbs(path) {
		if start == "" {
			return object("the path is relative to an unknown directory").or("use an absolute path")
		}
		path = filepath.Join(start, path)
	}
	path = filepath.Clean(path)
	end, err := follow(p.Links, path)
	if err != nil {
		return object("where the path leads cannot be found out (%v)", err)
	}
	for _, root := range roots {
		root = filepath.Clean(root)
		realRoot, err := follow(p.Links, root)
		if err == nil && filepath.IsAbs(root) && within(realRoot, end) {
			return nil
		}
	}
	if len(roots) == 0 {
		return object("there is no planning directory")
	}
	return object("the file is not in a planning directory").or("write below " + strings.Join(roots, ", "))
}

var errTooManyLinks = errors.New("too many links")

// follow resolves the links of an absolute, clean path as far as it exists.
func follow(links Links, path string) (string, error) {
	done, rest := "/", strings.Split(strings.TrimPrefix(path, "/"), "/")
	for followed := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, part)
		info, err := links.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			for _, missing := range rest {
				if missing == ".." {
					return "", fs.ErrNotExist
				}
			}
			return filepath.Join(append([]string{next}, rest...)...), nil
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if followed++; followed > maxLinks {
			return "", errTooManyLinks
		}
		target, err := links.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}
