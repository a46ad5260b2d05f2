package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"pilothouse/supervisor/api"
)

func (a *app) watchCommand() *cobra.Command {
	var web bool
	var addr string
	c := &cobra.Command{
		Use:   "watch",
		Short: "Watch the daemon's runs and lanes live",
		Long: `watch shows what the daemon has at work: its runs with their rounds and lanes,
and the transcript of the selected lane as it grows. It survives the end of the
daemon and goes on with the next one. ? lists its keys.

With --web it serves the same as a page for a browser on this machine and prints
its address. The address holds a secret: whoever has it can read the transcripts
and cancel what is at work. Ctrl-C ends it.

With --json it prints what there is to see now, once.`,
		Example: "  pilothouse watch\n  pilothouse watch --web\n  pilothouse watch --web --addr 127.0.0.1:8080",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case a.local:
				return &usageError{errors.New("watch shows what a daemon does; leave out --local")}
			case web && a.json:
				return &usageError{errors.New("--web and --json exclude each other")}
			case addr != defaultWatchAddr && !web:
				return &usageError{errors.New("--addr only goes with --web")}
			case !web && !a.json && !a.canDraw():
				return &usageError{errors.New("watch needs a terminal to draw on; use `pilothouse watch --web` or `pilothouse watch --json`")}
			}
			return a.watch(c.Context(), web, addr)
		},
	}
	c.Flags().BoolVar(&web, "web", false, "serve a page on this machine instead of drawing on the terminal")
	c.Flags().StringVar(&addr, "addr", defaultWatchAddr, "with --web: listen at this loopback `address`; port 0 takes a free one")
	return c
}

// canDraw tells whether a person sits at a terminal that knows how to move its cursor.
func (a *app) canDraw() bool {
	in, readable := a.in.(*os.File)
	out, writable := a.out.(*os.File)
	return readable && writable && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
}

func (a *app) watch(ctx context.Context, web bool, addr string) error {
	w, err := newWatcher(ctx, socketPath())
	if errors.Is(err, api.ErrNoDaemon) {
		return fmt.Errorf("%w on %s; start one with `pilothouse serve --detach`", err, socketPath())
	}
	if err != nil {
		return err
	}
	defer w.close()
	switch {
	case web:
		return a.serveWatch(ctx, w, addr)
	case a.json:
		v, _ := w.view()
		return a.printJSON(v)
	}
	return a.runWatchScreen(ctx, w)
}
