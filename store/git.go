package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

var (
	// ErrGitMissing tells that there is no git executable in PATH.
	ErrGitMissing = errors.New("git is not installed or not in PATH")
	// ErrWorkdirMissing tells that the working directory does not exist or is no directory.
	ErrWorkdirMissing = errors.New("the working directory does not exist")
)

// gitLocal are the variables that tie git to one repository (what
// `git rev-parse --local-env-vars` lists, and the quarantine of a hook). A session
// started from a git hook has them set, and they would lead us to its repository.
var gitLocal = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_COUNT",
	"GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE",
	"GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE", "GIT_NO_REPLACE_OBJECTS",
	"GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_REPLACE_REF_BASE",
	"GIT_SHALLOW_FILE", "GIT_WORK_TREE",
}

// gitEnvironment returns the environment for git without the variables that move
// the repository. Of the settings in variables those stay that say which repositories
// git may use at all: a container often has them nowhere else.
func gitEnvironment(environment []string) []string {
	variables := map[string]string{}
	kept := slices.DeleteFunc(slices.Clone(environment), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		variables[name] = value
		return slices.Contains(gitLocal, name) ||
			strings.HasPrefix(name, "GIT_CONFIG_KEY_") || strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
	})
	count, _ := strconv.Atoi(variables["GIT_CONFIG_COUNT"]) // git refuses what is no number
	safe := 0
	for i := range count {
		key, found := variables[fmt.Sprintf("GIT_CONFIG_KEY_%d", i)]
		if !found { // git refuses that as well
			break
		}
		if strings.HasPrefix(strings.ToLower(key), "safe.") {
			value := variables[fmt.Sprintf("GIT_CONFIG_VALUE_%d", i)]
			kept = append(kept, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", safe, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", safe, value))
			safe++
		}
	}
	if safe > 0 {
		kept = append(kept, fmt.Sprintf("GIT_CONFIG_COUNT=%d", safe))
	}
	return kept
}

// gitError is a git command that ran and failed.
type gitError struct {
	args    []string
	code    int
	message string // git's own words
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s: %s", strings.Join(e.args, " "), e.message)
}

// git runs one git command in workdir and returns what it printed, even when it
// failed. Errors: ErrGitMissing, ErrWorkdirMissing, *gitError, the context's.
func git(ctx context.Context, workdir string, args ...string) (string, error) {
	if info, err := os.Stat(workdir); err != nil || !info.IsDir() {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("open working directory: %w", err)
		}
		return "", fmt.Errorf("%w: %s", ErrWorkdirMissing, workdir)
	}
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = workdir
	command.Env = gitEnvironment(os.Environ())
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("git %s: %w", args[0], context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return "", ErrGitMissing
	case errors.As(err, &exit):
		message := strings.TrimSpace(stderr.String())
		if message == "" {
			message = exit.Error()
		}
		return stdout.String(), &gitError{args: args, code: exit.ExitCode(), message: message}
	case err != nil:
		return "", fmt.Errorf("run git: %w", err)
	}
	return stdout.String(), nil
}

var objectName = lazily(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Head returns the commit checked out in worktree, or nil while there is none. It
// is an error when git cannot tell.
func Head(ctx context.Context, worktree string) (*string, error) {
	out, err := git(ctx, worktree, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	var failed *gitError
	if errors.As(err, &failed) && failed.code == 1 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read HEAD: %w", err)
	}
	head := strings.TrimSpace(out)
	if !objectName().MatchString(head) {
		return nil, nil
	}
	return &head, nil
}
