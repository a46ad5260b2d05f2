//go:build !linux

package proc

import (
	"errors"
	"os"
	"syscall"
)

// terminal is only used on Linux.
type terminal struct{ master, slave *os.File }

func openTerminal() (*terminal, error) { return nil, errors.ErrUnsupported }
func (t *terminal) drain()             {}

// launched is a child from its start to its reaping.
type launched struct {
	process *os.Process
	state   *os.ProcessState
	err     error
}

func launch(file string, argv []string, attr *os.ProcAttr, _ *terminal, _ group) (*launched, error) {
	attr.Sys = &syscall.SysProcAttr{Setsid: true}
	process, err := os.StartProcess(file, argv, attr)
	if err != nil {
		return nil, err
	}
	return &launched{process: process}, nil
}

// awaitExit reaps the child as well: there is no portable way to wait without
// that. Its group keeps the number as long as it has members, so the sweep of
// the group that follows at once still means the right one.
func (l *launched) awaitExit() { l.state, l.err = l.process.Wait() }

func (l *launched) reap() (*os.ProcessState, error) { return l.state, l.err }

func cgroupRefused(error) bool { return false }
