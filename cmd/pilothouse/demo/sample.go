// Package demo holds what `pilothouse demo` works on: a sample workspace whose
// plan contains mistakes, four sample references, and the script by which the
// model server answers about them.
package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"pilothouse/actors"
)

//go:embed workspace refs answers
var files embed.FS

const (
	// Plan is the sample plan, relative to the workspace.
	Plan = "docs/PLAN_v1.md"
	// Context is what the references are judged for.
	Context = "Quaylink is a small short-link service in JavaScript. It writes its links to one JSON file, as a whole on each change. " +
		"Links.add() makes a slug, Links.get() reads a link; a cache of targets stands in front of it. DELETE makes a slug unknown (404). " +
		"The plan: Links.add() stores expiresAt, or null without a lifetime (I-001); Links.get() hides links that are over (I-003); " +
		"an hourly sweep removes them (I-004); a link that is over answers 410, an unknown one 404 (R-002)."
)

// references are the samples under refs, in the order of their lanes.
var references = []actors.Reference{
	{ID: "ttlmap", Title: "ttlmap, a map whose entries end", Kind: "library"},
	{ID: "tombstones", Title: "Design note 14: keep a stone where a link was", Kind: "design note"},
	{ID: "field-issues", Title: "Issues about links that end", Kind: "issue digest"},
	{ID: "gone-spec", Title: "Answers of a link service, draft 2", Kind: "specification"},
}

// Sample is the sample material, written out.
type Sample struct {
	Workspace  string // a git repository with one commit
	References []actors.Reference
}

// Write lays the sample out below dir, which must exist: the workspace in
// dir/quaylink, the references beside it. environ is what git runs with. Files
// that are there already are never overwritten (errors.Is fs.ErrExist).
func Write(ctx context.Context, dir string, environ []string) (Sample, error) {
	s := Sample{Workspace: filepath.Join(dir, "quaylink")}
	if err := write("workspace", s.Workspace); err != nil {
		return Sample{}, err
	}
	for _, ref := range references {
		ref.LocalPath = filepath.Join(dir, "refs", ref.ID)
		if err := write("refs/"+ref.ID, ref.LocalPath); err != nil {
			return Sample{}, err
		}
		s.References = append(s.References, ref)
	}
	// No template and no hooks: nothing of the person's git takes part.
	for _, args := range [][]string{
		{"init", "--quiet", "--template="},
		{"add", "--all"},
		{
			"-c", "user.name=Pilothouse demo", "-c", "user.email=demo@example.org", "-c", "commit.gpgSign=false",
			"-c", "core.hooksPath=" + os.DevNull, "commit", "--quiet", "--message=Quaylink 0.4.0 and a plan",
		},
	} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir, cmd.Env = s.Workspace, environ
		switch out, err := cmd.CombinedOutput(); {
		case errors.Is(err, exec.ErrNotFound):
			return Sample{}, errors.New("git is not installed or not on the PATH; the demo needs it for its sample workspace")
		case err != nil:
			return Sample{}, fmt.Errorf("make the sample workspace %s: git: %w: %s", s.Workspace, err, strings.TrimSpace(string(out)))
		}
	}
	return s, nil
}

// write copies a folder of the embedded files.
func write(from, to string) error {
	folder, err := fs.Sub(files, from)
	if err == nil {
		err = os.CopyFS(to, folder)
	}
	if err != nil {
		return fmt.Errorf("write the sample files: %w", err)
	}
	return nil
}
