package proc

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A re-executed program is a guard when it has this name and this variable.
const (
	guardName = "pilothouse-guard"
	envGuard  = "PILOTHOUSE_GUARD"
)

// guardMessage is one line on the pipe from the orchestrator to its guard.
type guardMessage struct {
	Group  string  `json:"group,omitempty"`  // the parent group, to be removed at the end
	Add    *record `json:"add,omitempty"`    // a child is about to start, or has
	Remove string  `json:"remove,omitempty"` // the child with this nonce is reaped and swept
}

// guardHooked is set once GuardMain was called: only then may this program be
// re-executed as a guard, since otherwise the guard would do the program's work.
var guardHooked atomic.Bool

// GuardMain turns this process into a guard when it was started as one, and
// then never returns; otherwise it returns at once. Every program that uses a
// Spawner calls it first thing in main, and in TestMain; without the call
// children have no guard.
//
// A guard reads what its orchestrator registers and, when the orchestrator is
// gone, whatever ended it, ends the trees of all children still registered.
// It ignores the signals that end an orchestrator, because a service manager
// sends them to both.
func GuardMain() {
	if !isGuard() {
		guardHooked.Store(true)
		return
	}
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	guard(os.Stdin)
	syscall.Exit(0) // past the exit hooks of the program, which a guard has no use for
}

func isGuard() bool { return os.Getenv(envGuard) != "" && os.Args[0] == guardName }

func guard(orchestrator *os.File) {
	live := map[string]record{}
	var parent group
	for lines := json.NewDecoder(orchestrator); ; {
		var m guardMessage
		if lines.Decode(&m) != nil { // the other end is closed: the orchestrator is gone or done
			break
		}
		switch {
		case m.Group != "":
			parent = group{path: m.Group}
		case m.Add != nil:
			live[m.Add.Child.Nonce] = *m.Add
		default:
			delete(live, m.Remove)
		}
	}
	var all sync.WaitGroup
	for _, rec := range live {
		all.Go(func() { rec.end() })
	}
	all.Wait()
	parent.remove()
}

// guardLink is the orchestrator's side. It starts the guard with the first
// child, and again when it was lost while children live.
type guardLink struct {
	log    *slog.Logger
	parent group

	mu       sync.Mutex
	live     map[string]record
	guard    *guardProcess
	off      bool // this program cannot be a guard, or the link is closed
	lost     int
	watchers sync.WaitGroup
}

// guardProcess is one guard.
type guardProcess struct {
	process *os.Process
	pipe    *os.File
	gone    chan struct{} // closed when it is reaped
}

const (
	// guardPatience bounds how long a guard that does not read, or does not end, is waited for.
	guardPatience = 2 * time.Second
	// guardRestarts is how often a guard that ended by itself is replaced at once;
	// after that the next child brings a new one.
	guardRestarts = 10
)

// add registers a child, or what is new about it. A guard is a safety net: when
// it cannot be had, the child starts without it and the log says so.
func (g *guardLink) add(rec record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live[rec.Child.Nonce] = rec
	if g.guard != nil && g.guard.send(guardMessage{Add: &rec}) == nil {
		return
	}
	g.drop()
	g.start()
}

func (g *guardLink) remove(nonce string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.live, nonce)
	if g.guard != nil && g.guard.send(guardMessage{Remove: nonce}) != nil {
		g.drop()
		if len(g.live) > 0 {
			g.start()
		}
	}
}

// start brings a guard that knows of everything that lives.
func (g *guardLink) start() {
	if g.off {
		return
	}
	if !guardHooked.Load() {
		g.off = true
		g.log.Warn("children run without a guard process: the program does not call proc.GuardMain")
		return
	}
	guard, err := startGuard()
	if err == nil {
		g.guard = guard
		g.watchers.Go(func() { g.watch(guard) })
		err = g.tellAll()
	}
	if err != nil {
		g.drop()
		g.log.Warn("children run without a guard process", "error", err)
	}
}

func startGuard() (*guardProcess, error) {
	program, err := selfProgram()
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	defer func() { _ = theirs.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	defer func() { _ = null.Close() }()
	process, err := os.StartProcess(program, []string{guardName}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{envGuard + "=1", "GOMAXPROCS=2"},
		Files: []*os.File{theirs, null, null},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	return &guardProcess{process: process, pipe: ours, gone: make(chan struct{})}, nil
}

func (g *guardLink) tellAll() error {
	if g.parent.path != "" {
		if err := g.guard.send(guardMessage{Group: g.parent.path}); err != nil {
			return fmt.Errorf("tell guard: %w", err)
		}
	}
	for _, rec := range g.live {
		if err := g.guard.send(guardMessage{Add: &rec}); err != nil {
			return fmt.Errorf("tell guard: %w", err)
		}
	}
	return nil
}

func (p *guardProcess) send(m guardMessage) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_ = p.pipe.SetWriteDeadline(time.Now().Add(guardPatience))
	_, err = p.pipe.Write(append(line, '\n'))
	return err
}

// watch reaps a guard and replaces it when it was lost. What was sent to it
// while it died is not lost with it.
func (g *guardLink) watch(guard *guardProcess) {
	_, _ = guard.process.Wait()
	close(guard.gone)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.guard != guard { // it was dropped
		return
	}
	g.drop()
	if g.lost++; g.lost <= guardRestarts && len(g.live) > 0 {
		g.start()
	}
}

// drop ends a guard that does not listen any more.
func (g *guardLink) drop() {
	if g.guard == nil {
		return
	}
	_ = g.guard.process.Kill()
	_ = g.guard.pipe.Close()
	<-g.guard.gone
	g.guard = nil
}

// close tells the guard that the orchestrator is done. It ends what is still
// registered, then itself.
func (g *guardLink) close() {
	g.mu.Lock()
	guard := g.guard
	g.guard, g.off = nil, true
	g.mu.Unlock()
	if guard != nil {
		_ = guard.pipe.Close()
		late := time.AfterFunc(guardPatience+sweepBound, func() { _ = guard.process.Kill() })
		<-guard.gone
		late.Stop()
	}
	g.watchers.Wait()
}
