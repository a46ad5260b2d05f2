package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// FileChange is how a file of a work tree differs from a commit.
type FileChange struct {
	Path string `json:"path"` // relative to the work tree
	// Added and Removed count lines; both are 0 for a binary file and for a new one that
	// git does not track.
	Added   int  `json:"added"`
	Removed int  `json:"removed"`
	New     bool `json:"new,omitempty"` // not tracked by git
}

// DiffStat tells which files of worktree differ from a commit: committed since, staged,
// only changed, or new. Ignored files are none of them.
func DiffStat(ctx context.Context, worktree, commit string) ([]FileChange, error) {
	changed, err := git(ctx, worktree, "diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", commit, "--")
	if err != nil {
		return nil, fmt.Errorf("compare with commit %.12s: %w", commit, err)
	}
	var changes []FileChange
	for line := range strings.SplitSeq(changed, "\x00") {
		fields := strings.SplitN(line, "\t", 3)
		if len(fields) != 3 {
			continue
		}
		change := FileChange{Path: fields[2]}
		change.Added, _ = strconv.Atoi(fields[0]) // "-" for a binary file
		change.Removed, _ = strconv.Atoi(fields[1])
		changes = append(changes, change)
	}
	untracked, err := git(ctx, worktree, "ls-files", "--others", "--exclude-standard", "-z", "--full-name")
	if err != nil {
		return nil, fmt.Errorf("list new files: %w", err)
	}
	for path := range strings.SplitSeq(untracked, "\x00") {
		if path != "" {
			changes = append(changes, FileChange{Path: path, New: true})
		}
	}
	return changes, nil
}
