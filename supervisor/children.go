package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"pilothouse/lanes"
	"pilothouse/lanes/proc"
)

// children starts processes for this system. Nothing is made before the first
// round needs it: most commands start no child.
type children struct {
	dir      string // notes for the sweep, "" keeps none
	noCgroup bool
	turns    *lanes.Turns
	logger   *slog.Logger
	metrics  *metrics
	sweep    sync.WaitGroup

	mu      sync.Mutex
	spawner *proc.Spawner
}

// start returns the spawner, made at the first call. That call also ends, beside
// the round, what a killed process has left behind.
func (c *children) start() (*proc.Spawner, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spawner != nil {
		return c.spawner, nil
	}
	if c.dir != "" {
		if err := writable(c.dir); err != nil {
			c.logger.Warn("children are not noted for a sweep after a crash", "error", err)
			c.dir = ""
		}
	}
	spawner, err := proc.NewSpawner(proc.Options{
		StateDir: c.dir, NoCgroup: c.noCgroup, Logger: c.logger,
		Turn: func() func() { return c.turns.Take(context.Background(), lanes.UnderWay) },
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to start children: %w", err)
	}
	c.spawner = spawner
	if c.dir != "" {
		c.sweep.Go(c.sweepLeftovers)
	}
	return spawner, nil
}

func (c *children) sweepLeftovers() {
	report, err := proc.Sweep(c.dir, c.logger)
	if err != nil {
		c.logger.Warn("children of an earlier process not swept", "error", err)
	}
	c.metrics.swept(report.Killed)
	if report.Killed > 0 {
		c.logger.Info("children of an earlier process ended", "processes", report.Killed)
	}
}

// close ends what is left and waits for it, no longer than ctx.
func (c *children) close(ctx context.Context) error {
	c.sweep.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spawner == nil {
		return nil
	}
	if err := c.spawner.Close(ctx); err != nil {
		return fmt.Errorf("end children: %w", err)
	}
	return nil
}

// writable makes a directory and tells whether files can be made in it. The notes
// on children are a safety net; a home that is missing, full or read-only, as in
// many containers, must not keep anybody from a review.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}
