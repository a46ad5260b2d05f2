package store

// Process is a process of this machine, told from a later one that gets its id.
type Process struct {
	PID        int
	startTicks string // "" when the system does not tell
}

// ProcessOf is the process that has the id now.
func ProcessOf(pid int) Process {
	return Process{PID: pid, startTicks: inspectProcess(pid).startTicks}
}

// Gone tells whether the process has ended for certain: nobody has its id, or another one.
func (p Process) Gone() bool {
	now := inspectProcess(p.PID)
	return !now.exists || p.startTicks != "" && now.startTicks != "" && now.startTicks != p.startTicks
}
