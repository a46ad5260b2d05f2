package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// refreshPause is how much time passes at least between two looks at the daemon's state.
const refreshPause = 100 * time.Millisecond

// runWatchScreen shows what a watcher sees until the user quits or ctx ends. The
// terminal is left as it was.
func (a *app) runWatchScreen(ctx context.Context, w *watcher) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	screen := newWatchScreen()
	program := tea.NewProgram(screen, tea.WithInput(a.in), tea.WithOutput(a.out), tea.WithoutSignalHandler())
	var orders sync.WaitGroup // requests of the screen
	screen.read = func(key, call, lane string, from int64) {
		orders.Go(func() {
			page := transcriptRead{key: key}
			page.entries, page.next, page.more, page.err = w.transcript(ctx, call, lane, from)
			program.Send(page)
		})
	}
	screen.cancel = func(call, lane, name string) {
		orders.Go(func() { program.Send(cancelAnswered{name, w.cancel(ctx, call, lane)}) })
	}
	var g group
	g.add(func() error {
		_, err := program.Run()
		if err != nil {
			err = fmt.Errorf("draw on the terminal: %w", err)
		}
		return err
	}, program.Quit)
	g.add(func() error { w.follow(ctx); return nil }, stop)
	g.add(func() error {
		_ = w.each(ctx, refreshPause, func(v watchView) error { program.Send(v); return nil }) // it ends with ctx
		return nil
	}, stop)
	err := g.run()
	orders.Wait()
	return err
}
