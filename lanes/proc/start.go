package proc

import (
	"context"
	"os"
	"time"
)

// Start starts the program of spec and returns when it runs. A child whose
// program cannot be run gives a *StartError, one that is nested too deep a
// *DepthError, a Spawner that is closed ErrClosed, and a ctx that is done before
// the start its error. Once started, the child does not depend on ctx.
//
// The child's stdin stays open and empty until Feed. Its stdout has to be read
// to the end.
func (s *Spawner) Start(ctx context.Context, spec Spec) (*Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !s.enter() {
		return nil, ErrClosed
	}
	defer s.inflight.Done()
	spec = spec.withDefaults()
	file, err := locate(spec)
	if err != nil {
		return nil, err
	}
	nonce := newNonce()
	env, err := childEnv(spec, nonce)
	if err != nil {
		return nil, err
	}
	pipes, err := s.layPipes()
	if err != nil {
		return nil, explain(spec, file, err)
	}
	own := s.newGroup(nonce)
	rec := record{
		Schema:       recordSchema,
		Label:        label(spec.Label),
		Child:        Identity{BootID: s.owner.BootID, PIDNamespace: s.owner.PIDNamespace, Nonce: nonce, Cgroup: own.path},
		Orchestrator: s.owner,
	}
	c := &Child{spawner: s, spec: spec, pipes: pipes, own: own, rec: rec, started: time.Now()}
	if err := s.launch(ctx, c, file, env); err != nil {
		s.guard.remove(nonce)
		s.records.remove(c.rec.Child)
		c.own.remove()
		pipes.close()
		return nil, err
	}
	pipes.closeTheirs()
	s.mu.Lock()
	s.children[nonce] = c
	s.mu.Unlock()
	c.run()
	return c, nil
}

// launch records the child, starts it, and records it again with its number.
func (s *Spawner) launch(ctx context.Context, c *Child, file string, env []string) error {
	if err := s.records.put(c.rec); err != nil {
		return explain(c.spec, file, err)
	}
	s.guard.add(c.rec)
	var err error
	start := func() {
		argv := append([]string{c.spec.Path}, c.spec.Args...)
		attr := func() *os.ProcAttr {
			return &os.ProcAttr{Dir: c.spec.Dir, Env: env, Files: c.pipes.theirs}
		}
		c.started = time.Now()
		c.leader, err = launch(file, argv, attr(), c.pipes.tty, c.own)
		if err == nil || c.own.path == "" || !cgroupRefused(err) {
			return
		}
		refusal := err
		if c.leader, err = launch(file, argv, attr(), c.pipes.tty, group{}); err == nil {
			c.own.remove()
			c.own, c.rec.Child.Cgroup = group{}, ""
			s.stopUsingGroups(refusal)
		}
	}
	if !s.onThread(ctx, start) {
		return ctx.Err()
	}
	if err != nil {
		return explain(c.spec, file, err)
	}
	c.rec.Child.PID = c.leader.process.Pid
	if p, err := readProcess(c.rec.Child.PID); err == nil {
		c.rec.Child.StartTicks = p.ticks
	}
	s.guard.add(c.rec)
	if err := s.records.put(c.rec); err != nil {
		// The first record still leads to the child by its marker and its cgroup.
		s.log.Warn("record of a child process lacks its number", "error", err)
	}
	return nil
}
