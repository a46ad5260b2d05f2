package proc

import (
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

func selfProgram() (string, error) { return os.Executable() }

var bootID = sync.OnceValue(func() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id
})

// pidNamespace is constant: macOS has one table of processes.
func pidNamespace() string { return "host" }

// zombieState is SZOMB of <sys/proc.h>.
const zombieState = 5

func readProcess(pid int) (process, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return process{}, fmt.Errorf("read process %d: %w", pid, fs.ErrNotExist)
	}
	start := info.Proc.P_starttime
	return process{
		pid:    pid,
		parent: int(info.Eproc.Ppid),
		ticks:  uint64(start.Sec)*1e6 + uint64(start.Usec),
		zombie: info.Proc.P_stat == zombieState,
	}, nil
}
