package proc

import (
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// drainBound is how long a reader of the child's output may wait for more
	// after the tree was swept.
	drainBound = time.Second
	// killBound is how long a child that was sent SIGKILL is waited for.
	killBound = 5 * time.Second
)

// Child is one process tree. Its methods may be called from many goroutines,
// Stdout's Read from one.
type Child struct {
	spawner *Spawner
	spec    Spec
	pipes   *plumbing
	own     group
	rec     record
	leader  *launched
	started time.Time

	term, kill       chan struct{} // closed on request
	termOnce, killed sync.Once
	exited           chan struct{} // closed when the leader has exited, reaped or not
	done             chan struct{}

	mu    sync.Mutex
	input input
	over  bool           // nothing is said any more
	tasks sync.WaitGroup // writer of stdin, stderr and terminal

	stderr tail
	exit   Exit // valid when done is closed
}

// run starts the goroutines that belong to the child. All have ended when Done is closed.
func (c *Child) run() {
	c.term, c.kill = make(chan struct{}), make(chan struct{})
	c.exited, c.done = make(chan struct{}), make(chan struct{})
	c.stderr.limit = c.spec.StderrTail
	c.tasks.Go(func() { _, _ = io.Copy(&c.stderr, c.pipes.stderr) })
	if c.pipes.tty != nil {
		c.tasks.Go(c.pipes.tty.drain)
	}
	go func() {
		c.leader.awaitExit()
		close(c.exited)
	}()
	go c.supervise()
}

// Stdout is what the child writes to stdout. It has to be read to io.EOF by one
// reader, also while the child is being ended: a child may wait for its output
// to be taken before it obeys SIGTERM (Pi fact §7). The end comes within a bound
// after the child's, whoever else still holds the pipe.
func (c *Child) Stdout() io.Reader { return c.pipes.stdout }

// Terminate asks the tree to end: SIGTERM to its process group, and after
// Spec.Grace what Kill does. It returns at once and may be called again.
func (c *Child) Terminate() { c.termOnce.Do(func() { close(c.term) }) }

// Kill ends the whole tree with SIGKILL. It returns at once and may be called again.
func (c *Child) Kill() { c.killed.Do(func() { close(c.kill) }) }

// Done is closed when the child is reaped and its tree swept.
func (c *Child) Done() <-chan struct{} { return c.done }

// Wait waits for Done and tells how the child ended. It is bounded after the end
// of the child itself, and after Kill; it does not wait for the reader of Stdout.
func (c *Child) Wait() Exit {
	<-c.done
	exit := c.exit
	exit.Ladder = slices.Clone(exit.Ladder)
	return exit
}

// Identity names the child's process.
func (c *Child) Identity() Identity { return c.rec.Child }

// supervise takes the child through its kill ladder and ends its tree. It is the
// only one that signals and reaps, so no signal can go to a number that is free again.
func (c *Child) supervise() {
	term, kill := c.term, c.kill
	var grace, giveUp <-chan time.Time
	for {
		select {
		case <-c.exited:
			c.finish(true)
			return
		case <-term:
			term = nil
			c.exit.Ladder = append(c.exit.Ladder, StepTerm)
			killGroup(c.rec.Child.PID, syscall.SIGTERM)
			timer := time.NewTimer(c.spec.Grace)
			defer timer.Stop()
			grace = timer.C
			continue
		case <-giveUp:
			c.finish(false)
			return
		case <-kill:
		case <-grace:
		}
		term, kill, grace = nil, nil, nil
		c.exit.Ladder = append(c.exit.Ladder, StepKill)
		c.endTree()
		timer := time.NewTimer(killBound)
		defer timer.Stop()
		giveUp = timer.C
	}
}

// endTree kills whatever of the tree is alive. The leader is not reaped yet.
func (c *Child) endTree() (killed int, clean bool) {
	return endTree(c.rec.Child, func() bool { return true }, c.own.path == "")
}

// finish sweeps what outlived the leader, reaps it and closes everything. A
// leader that does not die is left to a goroutine of the Spawner.
func (c *Child) finish(exited bool) {
	c.exit.Started, c.exit.Ended, c.exit.Code = c.started, time.Now(), -1
	end := c.spawner.turn()
	swept, clean := c.endTree()
	end()
	c.exit.Swept, c.exit.Leaked = swept, !clean || !exited
	if swept > 0 {
		c.exit.Ladder = append(c.exit.Ladder, StepSweep)
	}
	if exited {
		c.exit.Code, c.exit.Signal = status(c.leader.reap())
	} else {
		c.spawner.lost.Go(func() {
			<-c.exited
			_, _ = c.leader.reap()
			c.forget()
		})
	}

	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	_ = c.pipes.stdin.Close()
	c.pipes.stdout.endWithin(drainBound)
	c.pipes.stderr.endWithin(drainBound)
	if c.pipes.tty != nil {
		_ = c.pipes.tty.master.Close()
	}
	c.tasks.Wait()
	c.exit.Stderr, c.exit.StderrBytes = c.stderr.String(), c.stderr.total
	c.exit.Leaked = c.exit.Leaked || c.pipes.stderr.wasHeld()
	if c.exit.Leaked {
		c.spawner.log.Warn("something of a child's process tree could not be ended", "label", c.rec.Label, "pid", c.rec.Child.PID)
	}
	if exited && clean {
		c.forget()
	}
	c.spawner.mu.Lock()
	delete(c.spawner.children, c.rec.Child.Nonce)
	c.spawner.mu.Unlock()
	close(c.done)
}

// forget drops what leads the guard and Sweep to a tree that is gone.
func (c *Child) forget() {
	defer c.spawner.turn()()
	c.own.remove()
	c.spawner.records.remove(c.rec.Child)
	c.spawner.guard.remove(c.rec.Child.Nonce)
}

// status reads the code and the signal of a reaped child, see Exit.
func status(state *os.ProcessState, err error) (code int, signal string) {
	if err != nil {
		return -1, ""
	}
	wait, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !wait.Signaled() {
		return state.ExitCode(), ""
	}
	return 128 + int(wait.Signal()), unix.SignalName(wait.Signal())
}
