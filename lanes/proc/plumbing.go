package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// plumbing is what connects us to one child: our ends, and the child's until it
// has started. All descriptors are closed on exec.
type plumbing struct {
	stdin          *os.File
	stdout, stderr *output
	tty            *terminal // nil where there is none

	theirs []*os.File // stdin, stdout and stderr as the child sees them
}

// layPipes opens the pipes and the terminal of a child.
func (s *Spawner) layPipes() (*plumbing, error) {
	p := &plumbing{}
	var theirStdin, ourStdout, theirStdout, ourStderr, theirStderr *os.File
	var err error
	if theirStdin, p.stdin, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("open a pipe: %w", err)
	}
	p.theirs = []*os.File{theirStdin}
	if ourStdout, theirStdout, err = os.Pipe(); err != nil {
		p.close()
		return nil, fmt.Errorf("open a pipe: %w", err)
	}
	p.stdout = newWideOutput(ourStdout, &s.wide)
	p.theirs = append(p.theirs, theirStdout)
	if ourStderr, theirStderr, err = os.Pipe(); err != nil {
		p.close()
		return nil, fmt.Errorf("open a pipe: %w", err)
	}
	p.stderr = newOutput(ourStderr)
	p.theirs = append(p.theirs, theirStderr)
	p.tty, err = openTerminal()
	switch {
	case err == nil, errors.Is(err, errors.ErrUnsupported):
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		p.close()
		return nil, err
	default: // a system without pseudo-terminals, or with none left
		s.noTerminal.Do(func() { s.log.Warn("children run without a controlling terminal", "error", err) })
	}
	return p, nil
}

// closeTheirs closes the child's ends: while we hold them, our own never end.
func (p *plumbing) closeTheirs() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
	p.theirs = nil
	if p.tty != nil {
		_ = p.tty.slave.Close()
	}
}

// close gives everything up after a start that failed.
func (p *plumbing) close() {
	p.closeTheirs()
	_ = p.stdin.Close()
	for _, o := range []*output{p.stdout, p.stderr} {
		if o != nil {
			o.close()
		}
	}
	if p.tty != nil {
		_ = p.tty.master.Close()
	}
}
