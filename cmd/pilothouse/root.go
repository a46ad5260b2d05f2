package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/propagation"
	"golang.org/x/sys/unix"

	"pilothouse/supervisor"
)

// app is what the subcommands share: the streams and the global flags.
type app struct {
	streams
	workdir  string
	json     bool
	progress string
	pi       string
	local    bool
	verbose  bool
	telemetry
}

// run executes one command line and returns its exit status. It is main without
// the process.
func run(args []string, s streams) int {
	ctx, stop := interruptible()
	defer stop()
	a := &app{streams: s}
	root := a.command()
	root.SetArgs(args)
	// A session that traces hands its context on in the environment (W3C form).
	traced := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": os.Getenv("TRACEPARENT")})
	err := root.ExecuteContext(traced)
	status := exitStatus(err)
	if interrupted := interruptStatus(ctx); interrupted != 0 && err != nil {
		status = interrupted
	}
	if err != nil && err.Error() != "" {
		fmt.Fprintf(s.err, "pilothouse: %s\n", oneLine(err.Error()))
	}
	a.endTelemetry(status)
	return status
}

// interruptError is the cause of a context that a signal ended.
type interruptError struct{ signal os.Signal }

func (e *interruptError) Error() string {
	if number, ok := e.signal.(syscall.Signal); ok {
		return "interrupted by " + unix.SignalName(number)
	}
	return "interrupted by " + e.signal.String()
}

// status is what a shell reports for a process that the signal ended.
func (e *interruptError) status() int {
	if number, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitInterrupted
}

// interruptible returns a context that ends at the first SIGINT, SIGTERM or
// SIGHUP with an *interruptError as its cause. After the first, a second signal
// ends the process the hard way; the children go with it (package proc).
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			cancel(&interruptError{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
		signal.Stop(signals)
	}
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "pilothouse",
		Short: "Run the planning workflow of the Pi coding agent",
		Long: `pilothouse runs the planning workflow of the Pi coding agent: it has a plan
reviewed and criticised, and references analysed, by read-only pi children in
batches of three, and records every answer in the workspace's git directory.

No more pi children work at once than the machine has room for: one for each
200 MB of available memory, at most 8 for each core, 3 in any case.
PILOTHOUSE_MAX_CHILDREN names another number. Lanes beyond it are queued, and
runs take turns.

Exit status: 0 done, 1 the work failed, 2 usage, 3 refused by policy,
4 run owned by another, 130 interrupted.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("there is no command %q; see `pilothouse --help`", args[0])}
			}
			return nil
		},
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkGlobals(); err != nil {
				return err
			}
			return a.startTelemetry(c)
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w; see `%s --help`", err, c.CommandPath())}
	})
	flags := root.PersistentFlags()
	flags.StringVar(&a.workdir, "workdir", "", "work as if started in this `directory`")
	flags.BoolVar(&a.json, "json", false, "print one JSON object on stdout; progress goes to stderr")
	flags.StringVar(&a.progress, "progress", "auto", "how to show lanes at work: auto, tty, plain or none")
	flags.StringVar(&a.pi, "pi", "", "`command` that starts pi (default $PILOTHOUSE_PI, else pi)")
	flags.BoolVar(&a.local, "local", false, "work in this process, never through a daemon")
	flags.StringVar(&a.metricsAddr, "metrics-addr", "", "work in this process and serve its metrics at this `address`, a port for this machine only")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log what happens inside to stderr")
	root.AddCommand(
		a.refineCommand(), a.analyzeRefsCommand(), a.plansCommand(),
		a.runsCommand(), a.showCommand(), a.resumeCommand(), a.stopCommand(), a.abandonCommand(), a.executeCommand(), a.planRunCommand(), a.guardCommand(), a.compactCommand(), a.doctorCommand(), a.serveCommand(), a.watchCommand(), a.demoCommand(), a.installCommand(), a.versionCommand(),
	)
	return root
}

func (a *app) checkGlobals() error {
	switch a.progress {
	case "auto", "tty", "plain", "none":
	default:
		return &usageError{fmt.Errorf("--progress %q is none of auto, tty, plain, none", a.progress)}
	}
	if a.workdir == "" {
		wd, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("find the current directory: %w", err)
		}
		a.workdir = wd
	}
	if info, err := os.Stat(a.workdir); err != nil || !info.IsDir() {
		return &usageError{fmt.Errorf("--workdir %s is not a directory", a.workdir)}
	}
	workdir, err := filepath.Abs(a.workdir) // a daemon works elsewhere
	if err != nil {
		return fmt.Errorf("find the current directory: %w", err)
	}
	a.workdir = workdir
	if a.pi == "" {
		a.pi = os.Getenv("PILOTHOUSE_PI")
	}
	return nil
}

// session describes this command line to the supervisor.
func (a *app) session() supervisor.Session {
	return supervisor.Session{Workdir: a.workdir, Environ: os.Environ(), Pi: a.pi}
}

// noCgroupVariable, when set, keeps children out of cgroups, so that tests can see
// what the other safety nets do on a machine that has cgroups (CONTRIBUTING).
const noCgroupVariable = "PILOTHOUSE_NO_CGROUP"

// closeGrace bounds the orderly end of a command: kill ladders (5 s) and the
// last writes.
const closeGrace = 20 * time.Second

// logger tells on stderr what happens inside, when that is asked for.
func (a *app) logger() *slog.Logger {
	if !a.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// withSystem runs f with an actor system of its own and tears it down.
func (a *app) withSystem(f func(*supervisor.System) error) (err error) {
	children, err := maxChildren()
	if err != nil {
		return err
	}
	system, err := supervisor.New(a.systemOptions(a.logger(), children))
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		err = errors.Join(err, system.Close(ctx))
	}()
	return f(system)
}

// systemOptions are those of the actor system of this process. 0 children are as many as
// the machine has room for.
func (a *app) systemOptions(logger *slog.Logger, children int) supervisor.Options {
	o := supervisor.Options{Logger: logger, MaxChildren: children, NoCgroup: os.Getenv(noCgroupVariable) != "", Tracer: a.traces.spans(), Metrics: a.metrics.metrics()}
	a.metrics.announce(logger)
	a.traces.logTo(logger)
	if dir := stateDir(); dir != "" { // without a home children are not noted for a sweep
		o.ChildrenDir = filepath.Join(dir, "children")
	}
	return o
}

// stateDir is where this user's pilothouse processes keep what belongs to no
// workspace: below $XDG_STATE_HOME, by default ~/.local/state; "" without a home.
func stateDir() string {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "pilothouse")
}

// oneLine keeps an error message a sentence: joined errors come on lines.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), "; ")
}
