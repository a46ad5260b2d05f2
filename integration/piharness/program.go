package piharness

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ended is what a program left behind.
type Ended struct {
	Code           int
	Stdout, Stderr string
}

// Program is a pilothouse at work.
type Program struct {
	t              testing.TB
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	hung           *time.Timer
}

// Start starts pilothouse in the repository.
func (s *Scene) Start(args ...string) *Program {
	s.t.Helper()
	return s.StartIn(s.Dir, args...)
}

// StartIn starts pilothouse in a directory.
func (s *Scene) StartIn(dir string, args ...string) *Program {
	s.t.Helper()
	p := &Program{t: s.t, cmd: exec.Command(Binary(s.t), args...)}
	p.cmd.Dir, p.cmd.Env = dir, s.Env
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p.hung = time.AfterFunc(Patience, func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) })
	return p
}

// Signal sends the program a signal.
func (p *Program) Signal(signal os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
}

// Wait waits for its end. A data race or a panic fails the test; the exit status is
// asserted by the caller.
func (p *Program) Wait() Ended {
	p.t.Helper()
	_ = p.cmd.Wait()
	p.hung.Stop()
	e := Ended{p.cmd.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
	if strings.Contains(e.Stderr, "DATA RACE") || strings.Contains(e.Stderr, "panic:") {
		p.t.Errorf("%v reported a defect:\n%s", p.cmd.Args[1:], e.Stderr)
	}
	return e
}

// Must runs pilothouse in the repository and fails the test unless it ends with the
// status.
func (s *Scene) Must(code int, args ...string) Ended {
	s.t.Helper()
	return s.MustIn(s.Dir, code, args...)
}

// MustIn is Must in a directory.
func (s *Scene) MustIn(dir string, code int, args ...string) Ended {
	s.t.Helper()
	e := s.StartIn(dir, args...).Wait()
	if e.Code != code {
		s.t.Fatalf("pilothouse %v ended with %d, want %d; stdout:\n%s\nstderr:\n%s", args, e.Code, code, e.Stdout, e.Stderr)
	}
	return e
}
