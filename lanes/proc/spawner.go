package proc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// Spawner starts children and accounts for them until nothing of their trees is
// left. Its methods may be called from many goroutines.
type Spawner struct {
	log     *slog.Logger
	owner   Identity
	records records
	turn    func() (end func())
	guard   *guardLink
	starts  chan startRequest

	noTerminal sync.Once
	wide       widePipes

	mu       sync.Mutex
	parent   group // zero: no cgroups
	closed   bool
	children map[string]*Child // by nonce, until Done
	inflight sync.WaitGroup    // calls of Start
	lost     sync.WaitGroup    // children given up, not reaped yet
	thread   chan struct{}     // closed when the spawner thread has ended
	closing  sync.Once
	closeErr error
}

// startRequest is one start for the spawner's thread.
type startRequest struct {
	start func()
	done  chan struct{}
}

// spawners numbers the Spawners of this process, whose parent groups need different names.
var spawners atomic.Int64

// NewSpawner starts the thread that all children come from. It fails when
// StateDir cannot be made, or in a guard process; a missing cgroup or terminal
// is logged and done without.
func NewSpawner(options Options) (*Spawner, error) {
	log := options.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if isGuard() {
		return nil, errors.New("a guard process starts no children: the program does not call proc.GuardMain first")
	}
	if options.StateDir != "" {
		if err := os.MkdirAll(options.StateDir, 0o700); err != nil {
			return nil, fmt.Errorf("make folder for records of child processes: %w", err)
		}
	}
	turn := options.Turn
	if turn == nil {
		turn = func() func() { return func() {} }
	}
	owner, err := self()
	if err != nil {
		log.Warn("this process cannot tell its own identity, so a sweep after a crash will leave its children alone", "error", err)
	}
	s := &Spawner{
		log:      log,
		owner:    owner,
		records:  records{dir: options.StateDir},
		turn:     turn,
		starts:   make(chan startRequest),
		children: map[string]*Child{},
		thread:   make(chan struct{}),
	}
	if !options.NoCgroup {
		if s.parent, err = newParentGroup(owner, spawners.Add(1)); err != nil {
			log.Info("children run without a cgroup of their own", "reason", err)
		}
	}
	s.guard = &guardLink{log: log, parent: s.parent, live: map[string]record{}}
	go s.serve()
	return s, nil
}

// serve runs every start on one thread. The kernel sends a child its
// parent-death signal when the thread that forked it ends, and the Go runtime
// ends a thread when a goroutine returns that is locked to it; so this thread
// serves nothing else and lives until the last child is reaped.
func (s *Spawner) serve() {
	defer close(s.thread)
	runtime.LockOSThread()
	for request := range s.starts {
		request.start()
		close(request.done)
	}
}

// onThread runs start on the thread and waits for it. It returns false, and
// start is not run, when ctx is done first.
func (s *Spawner) onThread(ctx context.Context, start func()) bool {
	request := startRequest{start: start, done: make(chan struct{})}
	select {
	case s.starts <- request:
		<-request.done
		return true
	case <-ctx.Done():
		return false
	}
}

// Live counts the children that are not Done.
func (s *Spawner) Live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.children)
}

// Close refuses further starts, kills the children that are left, waits for
// them, ends the guard and removes the cgroups. When ctx is done first, or a
// child does not die, it returns an error; the guard and the parent-death signal
// are let loose on the rest then. Further calls wait for the first and return the same.
func (s *Spawner) Close(ctx context.Context) error {
	s.closing.Do(func() { s.closeErr = s.close(ctx) })
	return s.closeErr
}

func (s *Spawner) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.inflight.Wait()

	s.mu.Lock()
	left := make([]*Child, 0, len(s.children))
	for _, c := range s.children {
		left = append(left, c)
	}
	s.mu.Unlock()
	for _, c := range left {
		c.Kill()
	}
	var err error
	for _, c := range left {
		select {
		case <-c.Done():
		case <-ctx.Done():
			err = fmt.Errorf("close process spawner: children are still ending: %w", ctx.Err())
		}
	}
	s.guard.close()
	close(s.starts)
	<-s.thread
	if err == nil {
		err = s.awaitLost(ctx)
	}
	s.mu.Lock()
	parent := s.parent
	s.mu.Unlock()
	parent.remove()
	return err
}

// awaitLost waits until children that did not die of SIGKILL in time are reaped after all.
func (s *Spawner) awaitLost(ctx context.Context) error {
	reaped := make(chan struct{})
	go func() { // ends with the last of them
		s.lost.Wait()
		close(reaped)
	}()
	select {
	case <-reaped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close process spawner: a child does not die of SIGKILL: %w", ctx.Err())
	}
}

// enter admits one call of Start, unless the Spawner is closed.
func (s *Spawner) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.inflight.Add(1)
	return true
}

// newGroup makes the cgroup of one child, or the zero group when children go without.
func (s *Spawner) newGroup(nonce string) group {
	s.mu.Lock()
	parent := s.parent
	s.mu.Unlock()
	if parent.path == "" {
		return group{}
	}
	g, err := parent.child(nonce)
	if err != nil {
		s.log.Warn("a child runs without a cgroup of its own", "error", err)
	}
	return g
}

// stopUsingGroups is called when the kernel refused to start a child in its group.
func (s *Spawner) stopUsingGroups(cause error) {
	s.mu.Lock()
	parent := s.parent
	s.parent = group{}
	s.mu.Unlock()
	if parent.path != "" {
		parent.remove()
		s.log.Info("children run without a cgroup of their own", "reason", cause)
	}
}
