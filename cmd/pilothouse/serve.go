package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	socket   string
	logFile  string
	idleExit time.Duration
	drain    time.Duration
	detach   bool
	stop     bool
	children int // at once
}

func (a *app) serveCommand() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon that many sessions and command lines share",
		Long: `serve runs one daemon for this user. While it runs, the other commands work
through it: their calls go on when they are killed, and several Pi sessions
share one set of children. There are never more of them at once than
--max-children; lanes beyond that are queued, and runs take turns. Without a
daemon, or with --local, each command works by itself; what it prints and its
exit status are the same.

The daemon listens on a socket that only this user can open: below
$XDG_RUNTIME_DIR, else below the temporary directory. PILOTHOUSE_SOCKET or
--socket names another place.

At the first SIGTERM or SIGINT, and with --stop, it takes no new work, cancels
what is at work once --drain has passed, gives waiting clients their results and
ends. A second signal ends it at once; interrupted rounds can be resumed.`,
		Example: `  pilothouse serve --detach
  pilothouse serve --detach --idle-exit 30m
  pilothouse serve --stop`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkServe(c, &o); err != nil {
				return err
			}
			switch {
			case o.stop:
				return a.stopDaemon(c.Context(), o.socket)
			case o.detach:
				return a.detach(c, o)
			default:
				return a.serve(c.Context(), o)
			}
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.socket, "socket", "", "listen on the socket at this `path` (default $PILOTHOUSE_SOCKET, else this user's own place)")
	flags.StringVar(&o.logFile, "log-file", "", "append the log to this `file` as JSON lines, at most 10 MiB and as much of an older one (default stderr as text; with --detach a file in the state directory)")
	flags.DurationVar(&o.idleExit, "idle-exit", 0, "end when nothing was asked for this long (default never)")
	flags.DurationVar(&o.drain, "drain", 0, "when told to end, let rounds go on for this long before they are cancelled")
	flags.IntVar(&o.children, "max-children", 0, "pi children at once, those of all runs together (default $PILOTHOUSE_MAX_CHILDREN, else one for each 200 MB of available memory, at most 8 for each core, and at least 3)")
	flags.BoolVar(&o.detach, "detach", false, "start the daemon in the background and return when it answers")
	flags.BoolVar(&o.stop, "stop", false, "end the running daemon and return when it is gone")
	return c
}

// checkServe checks the flags, fills in defaults and makes paths absolute: a detached
// daemon works in another directory.
func (a *app) checkServe(c *cobra.Command, o *serveOptions) error {
	switch {
	case c.Flags().Changed("max-children") && o.children < 1:
		return &usageError{fmt.Errorf("--max-children %d is not a number from 1", o.children)}
	case o.idleExit < 0 || o.drain < 0:
		return &usageError{errors.New("--idle-exit and --drain take times that are not negative")}
	case o.detach && o.stop:
		return &usageError{errors.New("--detach and --stop exclude each other")}
	}
	if o.children == 0 && !o.stop {
		children, err := maxChildren()
		if err != nil {
			return err
		}
		o.children = children
	}
	if o.socket == "" {
		o.socket = socketPath()
	}
	if o.detach && o.logFile == "" {
		dir := stateDir()
		if dir == "" {
			return &usageError{errors.New("there is no home directory to keep the log in; name a file with --log-file")}
		}
		o.logFile = filepath.Join(dir, detachedLog)
	}
	for _, path := range []*string{&o.socket, &o.logFile} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("find the current directory: %w", err)
		}
		*path = abs
	}
	return nil
}

// serve runs the daemon until it is told to end, or idle for long enough.
func (a *app) serve(ctx context.Context, o serveOptions) (err error) {
	logger, closeLog, err := a.daemonLog(o.logFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	state := stateDir()
	if state == "" {
		return errors.New("there is no home directory to keep results in; set HOME or XDG_STATE_HOME")
	}
	socket, err := openSocket(ctx, o.socket)
	if err != nil {
		return err
	}
	// Last of all: until then this daemon holds runs and children.
	defer func() { err = errors.Join(err, socket.Release()) }()
	options := a.systemOptions(logger, o.children)
	options.SessionsDir = filepath.Join(state, "sessions")
	system, err := supervisor.New(options)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	defer stayResponsive()() // after what counts the processors
	server, err := api.NewServer(api.Options{
		System: system, Spool: callsDir(state, o.socket), Version: version, Logger: logger,
	})
	if err == nil {
		err = a.serveUntilTold(ctx, o, logger, socket, server)
		logger.Info("daemon ended", "error", err)
	} else {
		err = errors.Join(err, socket.Close())
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	err = errors.Join(err, system.Close(closing))
	if server != nil {
		server.Wait()
	}
	return err
}

func openSocket(ctx context.Context, path string) (*api.Socket, error) {
	passed, err := activated()
	if err != nil {
		return nil, err
	}
	if passed == nil {
		return api.Listen(ctx, path)
	}
	socket, err := api.Adopt(ctx, passed)
	if err != nil {
		return nil, errors.Join(err, passed.Close())
	}
	return socket, nil
}

// serveUntilTold serves until a signal, a client or idleness ends it, and then lets
// calls and clients come to their end.
func (a *app) serveUntilTold(ctx context.Context, o serveOptions, logger *slog.Logger, socket *api.Socket, server *api.Server) error {
	told, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	wait := func(done <-chan struct{}, why string) func() error {
		return func() error {
			select {
			case <-done:
				logger.Info("daemon ends", "because", why)
			case <-told.Done():
			}
			return nil
		}
	}
	interrupt := func() { end(nil) }
	var g group
	g.add(wait(ctx.Done(), "a signal came"), interrupt)
	g.add(wait(server.StopAsked(), "a client asked for it"), interrupt)
	if o.idleExit > 0 {
		g.add(func() error {
			if server.AwaitIdle(told, o.idleExit) == nil {
				logger.Info("daemon ends", "because", "nothing was asked for "+o.idleExit.String())
			}
			return nil
		}, interrupt)
	}
	var shutdown error
	g.add(func() error { return server.Serve(socket) }, func() {
		tell(logger, "STOPPING=1")
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drain+closeGrace)
		defer cancel()
		shutdown = server.Shutdown(closing, o.drain)
	})
	logger.Info("daemon listens", "socket", socket.Addr().String(), "pid", os.Getpid(), "version", version)
	tell(logger, "READY=1")
	return errors.Join(g.run(), shutdown)
}

// tell notifies the service manager; one that cannot be reached is no reason not to work.
func tell(logger *slog.Logger, state string) {
	if err := notify(state); err != nil {
		logger.Warn("service manager not told", "error", err)
	}
}

// callsDir is where the daemon of a socket keeps results. Each socket has a place of
// its own, so that two daemons never share one.
func callsDir(state, socket string) string {
	sum := sha256.Sum256([]byte(socket))
	return filepath.Join(state, "calls", hex.EncodeToString(sum[:6]))
}
