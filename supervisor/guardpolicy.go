package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pilothouse/store"
	"pilothouse/supervisor/guard"
)

// guardFile is our private file beside the shared state, pilothouse/guard.json:
// what a project adds to the policy of plan mode. People write it, we only read it.
type guardFile struct {
	// Allow are bare names of commands that only read.
	Allow []string `json:"allow"`
}

// GuardPolicy is the policy of plan mode for a workspace: its directories, those of
// its active run (spec: execution 5.7) and the project's additions. What cannot be
// read is left out, which makes the policy stricter; a notice tells of it.
func GuardPolicy(ctx context.Context, workdir string) (policy guard.Policy, notices []string) {
	root, err := store.Find(ctx, workdir)
	if err != nil {
		return policyOf(workdir, nil, nil)
	}
	if active, ok, err := root.Active(); err == nil && ok {
		if run, err := active.Load(); err == nil {
			return policyOf(workdir, &root, &run)
		}
	}
	return policyOf(workdir, &root, nil)
}

// policyOf is the policy for a directory, with the root of its state and the run that is
// worked on where there are any: without a repository there are no plans and no
// additions.
func policyOf(workdir string, root *store.Root, run *store.Run) (policy guard.Policy, notices []string) {
	policy = guard.Policy{Workspace: workdir, Dir: workdir, Links: realLinks{}}
	if home, err := os.UserHomeDir(); err == nil {
		policy.Home = home
		policy.Planning = append(policy.Planning, filepath.Join(home, ".cache", "pi-plans"))
	}
	if root == nil {
		return policy, nil
	}
	policy.Workspace = root.Worktree
	policy.Planning = append(policy.Planning, root.Dir)
	if run != nil && run.ArtifactDir != "" {
		policy.Planning = append(policy.Planning, absolute(workdir, run.ArtifactDir))
	}
	if config, err := root.LoadConfig(); err == nil && config.RefsRoot != nil && *config.RefsRoot != "" {
		policy.Planning = append(policy.Planning, absolute(workdir, *config.RefsRoot))
	}
	path := guardFilePath(*root)
	additions, err := readGuardFile(path)
	if err != nil {
		return policy, []string{fmt.Sprintf("%s is ignored: %v; correct or remove it", path, err)}
	}
	policy.Allow = additions.Allow
	refused := policy.Refused()
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		notices = append(notices, fmt.Sprintf("%q in %s does not count: %s", name, path, refused[name]))
	}
	return policy, notices
}

func guardFilePath(root store.Root) string {
	return filepath.Join(root.Dir, "pilothouse", "guard.json")
}

func readGuardFile(path string) (guardFile, error) {
	var file guardFile
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return file, nil
	}
	if err != nil {
		return file, fmt.Errorf("read guard configuration: %w", err)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return guardFile{}, fmt.Errorf("read guard configuration: %w", err)
	}
	return file, nil
}

// absolute resolves a path of the configuration, which is relative to the workdir or to
// the home directory.
func absolute(workdir, path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if expanded, err := store.Expand(path); err == nil {
			return expanded
		}
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(workdir, path)
}

// realLinks is the file system as the guard looks at it.
type realLinks struct{}

func (realLinks) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }
func (realLinks) Readlink(path string) (string, error)   { return os.Readlink(path) }
