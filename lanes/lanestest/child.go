package lanestest

import (
	"io"
	"sync"
	"testing"
	"time"

	"pilothouse/lanes"
	"pilothouse/lanes/proc"
)

// Script is what a child does, from its start to its exit. Its stdout is closed
// when it returns.
type Script func(*Child) proc.Exit

// Child is a scripted child.
type Child struct {
	Spec        lanes.Spec
	Traceparent string
	Number      int // counts the children of the lane from 1
	// PanicIn names the method that panics: Feed, Stdout, Read, Wait, Terminate.
	PanicIn string
	// ReadError is what reading stdout comes to after it has been closed, instead
	// of its end.
	ReadError error

	host *Host
	in   *io.PipeReader
	out  *io.PipeWriter
	fed  chan string
	said chan string
	over chan struct{} // closed when the other end has hung up
	term chan struct{}
	gone chan struct{}
	exit proc.Exit

	termOnce, waitOnce, overOnce sync.Once

	mu      sync.Mutex
	waited  bool
	drained bool
	hasTask bool
	points  map[string]*point
}

// point is a place in a script.
type point struct {
	reached, released         chan struct{}
	reachedOnce, releasedOnce sync.Once
}

func newChild(h *Host, spec lanes.Spec, traceparent string, number int) *Child {
	in, out := io.Pipe()
	return &Child{
		Spec: spec, Traceparent: traceparent, Number: number, host: h, in: in, out: out,
		fed: make(chan string, 1), said: make(chan string, 64), over: make(chan struct{}), term: make(chan struct{}), gone: make(chan struct{}), points: map[string]*point{},
	}
}

func (c *Child) play(script Script) {
	c.exit = script(c)
	c.CloseStdout()
	close(c.gone)
}

// Feed implements lanes.Child.
func (c *Child) Feed(task []byte) {
	c.panicIn("Feed")
	select {
	case c.fed <- string(task):
		c.mu.Lock()
		c.hasTask = true
		c.mu.Unlock()
		c.host.fed()
	default:
	}
}

// Stdout implements lanes.Child.
func (c *Child) Stdout() io.Reader {
	c.panicIn("Stdout")
	return stdout{c}
}

type stdout struct{ c *Child }

func (s stdout) Read(p []byte) (int, error) {
	s.c.panicIn("Read")
	n, err := s.c.in.Read(p)
	if err != nil {
		s.c.mu.Lock()
		s.c.drained = true
		s.c.mu.Unlock()
	}
	return n, err
}

// Drained tells that stdout has been read to its end.
func (c *Child) Drained() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drained
}

// Terminate implements lanes.Child.
func (c *Child) Terminate() {
	c.panicIn("Terminate")
	c.termOnce.Do(func() { close(c.term) })
}

// Done implements lanes.Child.
func (c *Child) Done() <-chan struct{} { return c.gone }

// Wait implements lanes.Child.
func (c *Child) Wait() proc.Exit {
	c.panicIn("Wait")
	<-c.gone
	c.waitOnce.Do(func() {
		c.mu.Lock()
		c.waited = true
		hadTask := c.hasTask
		c.mu.Unlock()
		c.host.waitedFor(hadTask)
	})
	return c.exit
}

func (c *Child) panicIn(method string) {
	c.mu.Lock()
	panics := c.PanicIn == method
	if panics {
		c.PanicIn = "" // once: what ends the child afterwards works
	}
	c.mu.Unlock()
	if panics {
		panic("injected into " + method)
	}
}

// Waited tells that Wait has returned.
func (c *Child) Waited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waited
}

// Task waits for the task. It is false when the child is to end first.
func (c *Child) Task() (string, bool) {
	select {
	case task := <-c.fed:
		return task, true
	case <-c.term:
		return "", false
	}
}

// Print writes lines to stdout. It waits until they are read.
func (c *Child) Print(lines ...string) {
	for _, line := range lines {
		_, _ = io.WriteString(c.out, line+"\n")
	}
}

// CloseStdout closes stdout before the child exits.
func (c *Child) CloseStdout() { _ = c.out.CloseWithError(c.ReadError) }

// Hold stops the script until the test releases the point. It is false when the
// child is to end first.
func (c *Child) Hold(name string) bool {
	p := c.point(name)
	p.reachedOnce.Do(func() { close(p.reached) })
	select {
	case <-p.released:
		return true
	case <-c.term:
		return false
	}
}

// HoldThrough stops the script until the test releases the point, whoever asks the
// child to end.
func (c *Child) HoldThrough(name string) {
	p := c.point(name)
	p.reachedOnce.Do(func() { close(p.reached) })
	<-p.released
}

// AwaitEnd stops the script until the child is asked to end.
func (c *Child) AwaitEnd() { <-c.term }

// At waits until the script has reached a point.
func (c *Child) At(t testing.TB, name string) {
	t.Helper()
	await(t, c.point(name).reached, "the child of lane "+c.Spec.ID+" does not reach "+name)
}

// Terminated waits until the child is asked to end.
func (c *Child) Terminated(t testing.TB) {
	t.Helper()
	await(t, c.term, "the child of lane "+c.Spec.ID+" is not asked to end")
}

// Release lets the script go on from a point, now or when it gets there.
func (c *Child) Release(name string) {
	p := c.point(name)
	p.releasedOnce.Do(func() { close(p.released) })
}

func (c *Child) point(name string) *point {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.points[name] == nil {
		c.points[name] = &point{reached: make(chan struct{}), released: make(chan struct{})}
	}
	return c.points[name]
}

func await(t testing.TB, done <-chan struct{}, otherwise string) {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-done:
	case <-timeout.C:
		t.Fatal(otherwise)
	}
}
