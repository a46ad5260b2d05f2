package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"pilothouse/supervisor/api"
)

// startPatience is how long a detached daemon may take until it answers.
const startPatience = 20 * time.Second

// stopPatience is how long it may take to end beyond the time it was given to drain,
// which it alone knows: a stuck daemon must not hold --stop for ever.
const stopPatience = time.Hour

// daemonInfo is what serve --detach and serve --stop print with --json.
type daemonInfo struct {
	Socket  string `json:"socket"`
	PID     int    `json:"pid,omitempty"`
	Log     string `json:"log,omitempty"`
	Running bool   `json:"running"`
}

// detach starts the daemon in a session of its own and waits until it answers.
func (a *app) detach(c *cobra.Command, o serveOptions) error {
	log, err := openLog(o.logFile)
	if err != nil {
		return err
	}
	defer log.Close()
	start, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	daemon := exec.Command(self, daemonArgs(c.Flags(), o)...)
	daemon.Dir = "/" // holds no file system
	daemon.Stdout, daemon.Stderr = log, log
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := daemon.Start(); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	pid := daemon.Process.Pid
	if err := awaitDaemon(c.Context(), o.socket, pid); err != nil {
		var exited *exitedError
		if errors.As(err, &exited) {
			return daemonFailure(log, start, o.logFile)
		}
		return errors.Join(err, daemon.Process.Signal(syscall.SIGTERM))
	}
	if err := daemon.Process.Release(); err != nil {
		return fmt.Errorf("leave the daemon: %w", err)
	}
	if a.json {
		return a.printJSON(daemonInfo{Socket: o.socket, PID: pid, Log: o.logFile, Running: true})
	}
	fmt.Fprintf(a.out, "The daemon (process %d) listens on %s.\nIts log is %s.\n", pid, o.socket, o.logFile)
	return nil
}

// daemonArgs is the command line of the daemon: this one, not detached.
func daemonArgs(flags *pflag.FlagSet, o serveOptions) []string {
	args := []string{"serve"}
	flags.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "detach", "json", "socket", "log-file", "workdir":
		default:
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return append(args, "--socket="+o.socket, "--log-file="+o.logFile)
}

// exitedError tells that the daemon ended before it answered.
type exitedError struct{}

func (*exitedError) Error() string { return "the daemon ended at once" }

// awaitDaemon waits until process pid, our child, answers on the socket.
func awaitDaemon(ctx context.Context, socket string, pid int) error {
	limited, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		if health, err := api.Ask(limited, socket); err == nil && health.PID == pid {
			return nil
		}
		var status unix.WaitStatus
		if ended, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); err == nil && ended == pid {
			return &exitedError{}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-limited.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("the daemon does not answer on %s", socket)
		}
	}
}

// daemonFailure is why a daemon ended at once, as it has written into its log.
func daemonFailure(log *os.File, start int64, path string) error {
	info, err := log.Stat()
	if err == nil && info.Size() < start { // it was full, and the daemon has begun it again
		start = 0
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.NewSectionReader(log, start, 1<<20))
	}
	if err != nil {
		return fmt.Errorf("the daemon ended at once; its log cannot be read: %w", err)
	}
	for line := range bytes.Lines(text) {
		if reason, found := bytes.CutPrefix(bytes.TrimSpace(line), []byte("pilothouse: ")); found {
			return errors.New(string(reason))
		}
	}
	return fmt.Errorf("the daemon ended at once; its log is %s", path)
}

// stopDaemon ends the daemon on a socket. That none runs is no failure.
func (a *app) stopDaemon(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	text := "The daemon on %s has ended.\n"
	switch err := api.Stop(ctx, socket); {
	case errors.Is(err, api.ErrNoDaemon):
		text = "No daemon listens on %s.\n"
	case err != nil:
		return err
	}
	if a.json {
		return a.printJSON(daemonInfo{Socket: socket})
	}
	fmt.Fprintf(a.out, text, socket)
	return nil
}
