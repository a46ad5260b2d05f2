package piharness

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Program is a program that a test has begun, or is about to.
type Program struct {
	Cmd            *exec.Cmd
	Stdout, Stderr Buffer

	t    testing.TB
	hung *time.Timer
}

// Prepare is a program that has not begun. Its command may still be changed.
func Prepare(t testing.TB, dir string, env []string, command ...string) *Program {
	p := &Program{t: t, Cmd: exec.Command(command[0], command[1:]...)}
	p.Cmd.Dir, p.Cmd.Env = dir, env
	p.Cmd.Stdout, p.Cmd.Stderr = &p.Stdout, &p.Stderr
	return p
}

// Begin starts the program. One that hangs is made to tell where.
func (p *Program) Begin() *Program {
	p.t.Helper()
	if err := p.Cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.Watch()
	return p
}

// Watch is for a program that something else than Begin has started.
func (p *Program) Watch() {
	p.hung = time.AfterFunc(Patience, func() { _ = p.Cmd.Process.Signal(syscall.SIGQUIT) })
}

// Signal sends the program a signal; one that has ended needs none.
func (p *Program) Signal(signal os.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// Says waits until the program has written words to stderr.
func (p *Program) Says(words string) {
	p.t.Helper()
	deadline, poll := time.After(Patience), time.NewTicker(5*time.Millisecond)
	defer poll.Stop()
	for !strings.Contains(p.Stderr.String(), words) {
		select {
		case <-deadline:
			p.t.Fatalf("%v never said %q:\n%s", p.Cmd.Args[1:], words, p.Stderr.String())
		case <-poll.C:
		}
	}
}

// Ended is what a program left behind.
type Ended struct {
	Code           int
	Signal         syscall.Signal // that ended it, 0 for none
	Stdout, Stderr string
}

// Last is the last line on stderr: what pilothouse has to say at the end.
func (e Ended) Last() string {
	lines := strings.Split(strings.TrimSpace(e.Stderr), "\n")
	return lines[len(lines)-1]
}

// Wait waits for its end. A data race or a panic fails the test; the exit status is
// asserted by the caller.
func (p *Program) Wait() Ended {
	p.t.Helper()
	_ = p.Cmd.Wait()
	p.hung.Stop()
	e := Ended{Code: p.Cmd.ProcessState.ExitCode(), Stdout: p.Stdout.String(), Stderr: p.Stderr.String()}
	if status, ok := p.Cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
	}
	for _, defect := range []string{"DATA RACE", "panic:", "goroutine "} {
		if strings.Contains(e.Stderr, defect) {
			p.t.Errorf("%v reported a defect:\n%s", p.Cmd.Args[1:], e.Stderr)
			break
		}
	}
	return e
}

// HasEnded tells whether Wait has returned.
func (p *Program) HasEnded() bool { return p.Cmd.ProcessState != nil }

// Prepare is a pilothouse in the repository that has not begun.
func (p *Place) Prepare(args ...string) *Program {
	p.t.Helper()
	return Prepare(p.t, p.Dir, p.Env, append([]string{Binary(p.t)}, args...)...)
}

// Start starts pilothouse in the repository.
func (p *Place) Start(args ...string) *Program {
	p.t.Helper()
	return p.Prepare(args...).Begin()
}

// StartIn starts pilothouse in a directory.
func (p *Place) StartIn(dir string, args ...string) *Program {
	p.t.Helper()
	program := p.Prepare(args...)
	program.Cmd.Dir = dir
	return program.Begin()
}

// Must runs pilothouse in the repository and fails the test unless it ends with the
// status.
func (p *Place) Must(code int, args ...string) Ended {
	p.t.Helper()
	return p.MustIn(p.Dir, code, args...)
}

// MustIn is Must in a directory.
func (p *Place) MustIn(dir string, code int, args ...string) Ended {
	p.t.Helper()
	e := p.StartIn(dir, args...).Wait()
	if e.Code != code {
		p.t.Fatalf("pilothouse %v ended with %d, want %d; stdout:\n%s\nstderr:\n%s", args, e.Code, code, e.Stdout, e.Stderr)
	}
	return e
}
