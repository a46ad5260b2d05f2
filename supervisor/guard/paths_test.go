package guard_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"pilothouse/supervisor/guard"
)

// disk is the real file system.
type disk struct{}

func (disk) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }
func (disk) Readlink(path string) (string, error)   { return os.Readlink(path) }

// denied is a file system that says nothing about one path.
type denied struct {
	disk
	path string
}

func (d denied) Lstat(path string) (fs.FileInfo, error) {
	if path == d.path {
		return nil, fs.ErrPermission
	}
	return d.disk.Lstat(path)
}

func TestWriteAndEditWorkInsideThePlanningDirectoriesOnly(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(parts ...string) string { return filepath.Join(append([]string{base}, parts...)...) }
	for _, dir := range []string{"repo/docs/plans", "repo/src", "home/.cache/pi-plans", "elsewhere", "real-plans"} {
		if err := os.MkdirAll(in(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"repo/docs/plans/out":     "../../src",               // a directory outside
		"repo/docs/plans/far":     in("elsewhere"),           // the same, absolute
		"repo/docs/plans/file":    "../../src/main.go",       // a file outside
		"repo/docs/plans/new":     in("elsewhere/new"),       // to what does not exist
		"repo/docs/plans/loop":    "loop",                    // to itself
		"repo/docs/plans/in":      ".",                       // stays inside
		"repo/docs/plans/up":      "..",                      // leaves by a parent
		"repo/src/plans":          "../docs/plans",           // leads in from outside
		"linked-plans":            "real-plans",              // a planning directory that is a link
		"repo/docs/plans/chain":   in("repo/docs/plans/far"), // two links
		"repo/docs/plans/dangler": "nowhere/../../../src/x",  // up from what does not exist
	} {
		if err := os.Symlink(target, in(link)); err != nil {
			t.Fatal(err)
		}
	}
	policy := guard.Policy{
		Workspace: in("repo"), Dir: in("repo"), Home: in("home"), Links: disk{},
		Planning: []string{in("repo/docs/plans"), in("home/.cache/pi-plans"), in("linked-plans"), in("later")},
	}
	for path, want := range map[string]guard.Decision{
		"docs/plans/PLAN_v1.md":        guard.Allow,
		"docs/plans":                   guard.Allow, // the directory itself (spec: execution 5.7)
		"@docs/plans/PLAN_v1.md":       guard.Allow,
		"docs/plans/a/b/c.md":          guard.Allow, // made with its parents
		"./docs/./plans/x.md":          guard.Allow,
		"docs/plans/../plans/x.md":     guard.Allow,
		in("repo/docs/plans/x.md"):     guard.Allow,
		"~/.cache/pi-plans/refs/x":     guard.Allow,
		"docs/plans/in/x.md":           guard.Allow,
		"src/plans/x.md":               guard.Allow,
		in("linked-plans/x.md"):        guard.Allow,
		in("real-plans/x.md"):          guard.Allow, // the same place by its real name
		in("later/x.md"):               guard.Allow,
		"docs/plans/zwölf.md":          guard.Allow,
		"docs/plans2/x.md":             guard.Block,
		"docs/plans-x":                 guard.Block,
		"docs/x.md":                    guard.Block,
		"src/main.go":                  guard.Block,
		"docs/plans/../x.md":           guard.Block,
		"docs/plans/../../src/main.go": guard.Block,
		"docs/plans/out/main.go":       guard.Block,
		"docs/plans/far/x":             guard.Block,
		"docs/plans/chain/x":           guard.Block,
		"docs/plans/file":              guard.Block,
		"docs/plans/new":               guard.Block,
		"docs/plans/loop":              guard.Block,
		"docs/plans/loop/x":            guard.Block,
		"docs/plans/up/x.md":           guard.Block,
		"docs/plans/dangler":           guard.Block,
		in("elsewhere/x"):              guard.Block,
		"/etc/passwd":                  guard.Block,
		"~/x":                          guard.Block,
		"~":                            guard.Block,
		"~root/x":                      guard.Block,
		"@~/x":                         guard.Block,
		"@@docs/plans/x":               guard.Block,
		"":                             guard.Block,
		"@":                            guard.Block,
		"file:///etc/passwd":           guard.Block,
		"docs/plans/a\u00a0b":          guard.Block,
		"docs/plans/\u202egnp.md":      guard.Block,
		"docs/plans/a\x00b":            guard.Block,
		in("repo/docs/plans") + "/../../../etc/x": guard.Block,
	} {
		for _, tool := range []string{"write", "edit"} {
			got := policy.Tool(guard.ToolCall{Name: tool, Args: map[string]any{"path": path}})
			if got.Decision != want {
				t.Errorf("%s %q is %s, want %s: %s", tool, path, got.Decision, want, got.Reason)
			}
		}
	}
}

func TestAWriteThatCannotBeCheckedIsBlocked(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plan := filepath.Join(dir, "PLAN_v1.md")
	good := guard.Policy{Workspace: dir, Planning: []string{dir}, Links: disk{}}
	if got := good.Tool(guard.ToolCall{Name: "write", Args: map[string]any{"path": plan, "content": "# Plan"}}); !got.Allowed() {
		t.Fatal(got.Reason)
	}
	for name, test := range map[string]struct {
		policy guard.Policy
		args   map[string]any
	}{
		"no file system":          {guard.Policy{Workspace: dir, Planning: []string{dir}}, map[string]any{"path": plan}},
		"no planning directories": {guard.Policy{Workspace: dir, Links: disk{}}, map[string]any{"path": plan}},
		"a relative one":          {guard.Policy{Workspace: dir, Planning: []string{"."}, Links: disk{}}, map[string]any{"path": plan}},
		"no directory to be in":   {guard.Policy{Planning: []string{dir}, Links: disk{}}, map[string]any{"path": "PLAN_v1.md"}},
		"an unreadable parent":    {guard.Policy{Workspace: dir, Planning: []string{dir}, Links: denied{path: dir}}, map[string]any{"path": plan}},
		"no path":                 {good, map[string]any{"content": "x"}},
		"a path that is no text":  {good, map[string]any{"path": []any{plan}}},
		"another name for it":     {good, map[string]any{"file_path": plan}},
		"a second path":           {good, map[string]any{"path": plan, "file_path": "/etc/passwd"}},
		"a second target":         {good, map[string]any{"path": plan, "target": "/etc/passwd"}},
	} {
		if got := test.policy.Tool(guard.ToolCall{Name: "write", Args: test.args}); got.Allowed() {
			t.Errorf("%s: allowed", name)
		}
	}
}
