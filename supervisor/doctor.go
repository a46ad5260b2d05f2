package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes/proc"
	"pilothouse/store"
)

// Diagnosis is what there is to be said about a workspace and the ground it stands on.
// Looking changes nothing.
type Diagnosis struct {
	Pi        PiFinding        `json:"pi"`
	Workspace WorkspaceFinding `json:"workspace"`
	Cgroup    CgroupFinding    `json:"cgroup"`
	Children  ChildrenFinding  `json:"children"`
	// Runs counts all runs; Findings are those that somebody owns or that are broken.
	Runs     int          `json:"runs"`
	Findings []RunFinding `json:"findings"`
	// Wrong counts what keeps work from being done and does not mend itself. A dead
	// owner and a lock that a crash left do: the next command deals with them.
	Wrong int `json:"wrong"`
}

// PiFinding is the pi that a round would start.
type PiFinding struct {
	Command []string `json:"command,omitempty"` // the program, absolute, and its first words
	Version string   `json:"version,omitempty"` // as it prints it
	Problem string   `json:"problem,omitempty"`
}

// WorkspaceFinding is where the state of the workspace is.
type WorkspaceFinding struct {
	Git       string `json:"git,omitempty"` // what git says it is
	Worktree  string `json:"worktree,omitempty"`
	StateRoot string `json:"stateRoot,omitempty"`
	// Fresh tells that there is no state yet.
	Fresh   bool   `json:"fresh,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// CgroupFinding tells whether children get a cgroup each, which is what ends whole
// trees most surely. Without it the other nets hold them.
type CgroupFinding struct {
	Writable bool   `json:"writable"`
	Reason   string `json:"reason,omitempty"`
}

// ChildrenFinding is what is noted of children that were started for this user.
type ChildrenFinding struct {
	Dir string `json:"dir,omitempty"` // "" keeps no notes
	proc.Leftovers
	Problem string `json:"problem,omitempty"`
}

// RunFinding is a run that somebody owns or that is broken.
type RunFinding struct {
	RunID string `json:"runId"`
	// Owner is nil when nobody has the run, or when it cannot be read who has.
	Owner *OwnerFinding `json:"owner,omitempty"`
	// CorruptOwner tells that nobody can have the run until its owner.json is repaired.
	CorruptOwner bool `json:"corruptOwner,omitempty"`
	// LeftLock is an owner.json.lock that a crash left.
	LeftLock string `json:"leftLock,omitempty"`
	// Problems are files that cannot be read, each with its name.
	Problems []string `json:"problems,omitempty"`
}

// OwnerFinding is who has a run.
type OwnerFinding struct {
	Host       string           `json:"host"`
	PID        int              `json:"pid"`
	SessionID  string           `json:"sessionId,omitempty"`
	Since      string           `json:"since"`
	Generation int              `json:"generation"`
	State      store.OwnerState `json:"state"`
}

// wrong tells whether the run needs a person.
func (f RunFinding) wrong() bool {
	return len(f.Problems) > 0 || f.CorruptOwner || f.Owner != nil && f.Owner.State == store.OwnerUnverifiable
}

// Doctor examines a workspace and what pilothouse stands on. What it finds is in the
// Diagnosis, not in the error.
func (s *System) Doctor(ctx context.Context, session Session) (Diagnosis, error) {
	value, err := s.ask(ctx, nil, func(*actor.PID) prepare {
		return func(work context.Context) (destination, error) {
			return destination{value: s.examine(work, session)}, nil
		}
	})
	diagnosis, _ := value.(Diagnosis)
	return diagnosis, err
}

// ReleaseRun frees a run that keeps an owner though it should not, and returns what was
// done to that end; with force also when the owner lives or cannot be judged. Errors:
// *InputError, *store.OwnedError.
func (s *System) ReleaseRun(ctx context.Context, session Session, runID string, force bool) ([]store.Repair, error) {
	value, err := s.ask(ctx, nil, func(*actor.PID) prepare {
		return func(work context.Context) (destination, error) {
			root, err := store.Find(work, session.Workdir)
			if err != nil {
				return destination{}, err
			}
			run, err := root.Run(runID)
			if err != nil {
				return destination{}, noRunError("run", runID, err)
			}
			done, err := run.ReleaseOwner(work, force, s.now())
			return destination{value: done}, err
		}
	})
	done, _ := value.([]store.Repair)
	return done, err
}

func (s *services) examine(ctx context.Context, session Session) Diagnosis {
	d := Diagnosis{Pi: FindPi(ctx, session), Findings: []RunFinding{}, Children: ChildrenFinding{Dir: s.children.dir}}
	d.Cgroup = examineCgroup(proc.CgroupProblem())
	if d.Children.Dir != "" {
		var err error
		if d.Children.Leftovers, err = proc.Look(d.Children.Dir); err != nil {
			d.Children.Problem = err.Error()
		}
	}
	root, err := store.Find(ctx, session.Workdir)
	d.Workspace = examineWorkspace(ctx, root, err)
	if err == nil {
		d.Runs, d.Findings, err = examineRuns(root)
		if err != nil {
			d.Workspace.Problem = join(d.Workspace.Problem, err.Error())
		}
	}
	for _, problem := range []string{d.Pi.Problem, d.Workspace.Problem, d.Children.Problem} {
		if problem != "" {
			d.Wrong++
		}
	}
	for _, run := range d.Findings {
		if run.wrong() {
			d.Wrong++
		}
	}
	return d
}

// examineCgroup judges the place where children would get theirs. This is the doctor's
// own; a daemon of a service manager has another.
func examineCgroup(problem error) CgroupFinding {
	switch {
	case problem == nil:
		return CgroupFinding{Writable: true}
	case errors.Is(problem, fs.ErrPermission):
		return CgroupFinding{Reason: fmt.Sprintf("%v; a systemd service has it with Delegate=yes", problem)}
	default:
		return CgroupFinding{Reason: problem.Error()}
	}
}

// versionPatience bounds how long a program may take to say which one it is.
const versionPatience = 15 * time.Second

// FindPi finds the pi that a session would start, and asks it for its version.
func FindPi(ctx context.Context, session Session) PiFinding {
	command, err := piCommand(session)
	if err != nil {
		return PiFinding{Problem: err.Error()}
	}
	found := PiFinding{Command: append([]string{command.Path}, command.Args...)}
	found.Version, err = versionOf(ctx, session.Environ, found.Command...)
	if err != nil {
		found.Problem = fmt.Sprintf("pi does not tell its version: %v; name another one with --pi or PILOTHOUSE_PI", err)
	}
	return found
}

// versionOf is the first line that a program prints when it is asked for its version.
func versionOf(ctx context.Context, environ []string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionPatience)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], append(command[1:], "--version")...)
	c.Env = environ
	c.WaitDelay = time.Second // a grandchild may hold on to the output
	var stderr bytes.Buffer
	c.Stderr = &stderr // an older pi prints it there
	out, err := c.Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)+"\n"+stderr.String()), "\n")
	switch {
	case err != nil && line != "":
		return "", fmt.Errorf("%w: %.200s", err, line)
	case err != nil:
		return "", err
	case line == "":
		return "", errors.New("it prints nothing")
	}
	return line, nil
}

func examineWorkspace(ctx context.Context, root store.Root, findErr error) WorkspaceFinding {
	var found WorkspaceFinding
	found.Git, _ = versionOf(ctx, nil, "git") // without git findErr says so
	if findErr != nil {
		found.Fresh = errors.Is(findErr, store.ErrNoRepository)
		if !found.Fresh { // a directory of its own becomes a repository when it is used
			found.Problem = findErr.Error()
		}
		return found
	}
	found.Worktree, found.StateRoot = root.Worktree, root.Dir
	_, err := root.LoadConfig()
	switch {
	case errors.Is(err, store.ErrNoState):
		found.Fresh = true
	case err != nil:
		found.Problem = err.Error()
	}
	return found
}

// examineRuns returns how many runs there are and what is to be said about some.
func examineRuns(root store.Root) (int, []RunFinding, error) {
	findings := []RunFinding{}
	runs, err := root.Runs()
	for _, run := range runs {
		finding := RunFinding{RunID: run.Dir.ID}
		if run.Err != nil {
			finding.Problems = append(finding.Problems, run.Err.Error())
		}
		if _, err := run.Dir.LoadCheckpoint(); err != nil && !errors.Is(err, store.ErrNoCheckpoint) {
			finding.Problems = append(finding.Problems, err.Error())
		}
		examineOwner(run.Dir, &finding)
		if finding.Owner != nil || finding.LeftLock != "" || finding.wrong() {
			findings = append(findings, finding)
		}
	}
	return len(runs), findings, err
}

func examineOwner(run store.RunDir, finding *RunFinding) {
	owner, state, err := run.Owner()
	var corrupt *store.CorruptError
	switch {
	case err != nil:
		finding.CorruptOwner = errors.As(err, &corrupt)
		finding.Problems = append(finding.Problems, err.Error())
	case state != store.OwnerNone:
		finding.Owner = &OwnerFinding{
			Host: owner.Host, PID: owner.PID, SessionID: owner.Session(), Since: owner.AcquiredAt,
			Generation: owner.Generation, State: state,
		}
	}
	lock, there, err := run.TakeoverLock()
	if err != nil {
		finding.Problems = append(finding.Problems, err.Error())
	} else if there && lock.Left {
		finding.LeftLock = lock.Path
	}
}
