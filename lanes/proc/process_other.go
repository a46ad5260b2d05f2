//go:build !linux && !darwin

package proc

import (
	"errors"
	"fmt"
	"os"
)

func selfProgram() (string, error) { return os.Executable() }

// bootID is unknown here, so nothing recorded is ever proven and Sweep ends nothing.
func bootID() string { return "" }

func pidNamespace() string { return "" }

func readProcess(pid int) (process, error) {
	return process{pid: pid}, fmt.Errorf("read process %d: %w", pid, errors.ErrUnsupported)
}
