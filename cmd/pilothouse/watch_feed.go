package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"pilothouse/lanes"
	"pilothouse/supervisor/api"
)

const (
	// reconnectPause is how long a watcher waits before it looks for its daemon again.
	reconnectPause = 500 * time.Millisecond
	// relistPause gathers calls that are accepted at about the same time.
	relistPause = 50 * time.Millisecond
	// transcriptPage is about how much of a transcript is read at once, in bytes.
	transcriptPage = 256 << 10
)

// watcher follows a daemon, over its end and the start of the next one.
type watcher struct {
	socket string
	client *api.Client

	mu      sync.Mutex
	board   *board
	daemon  daemonView
	changed chan struct{} // closed and replaced at every change
}

// newWatcher finds the daemon. Without one there is nothing to watch.
func newWatcher(ctx context.Context, socket string) (*watcher, error) {
	client, err := api.Connect(ctx, socket)
	if err != nil {
		return nil, err
	}
	w := &watcher{socket: socket, client: client, board: newBoard(), changed: make(chan struct{})}
	if err := w.relist(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return w, nil
}

// close gives the connections back, once follow has returned.
func (w *watcher) close() { w.client.Close() }

// update changes what is known and tells those who wait for it.
func (w *watcher) update(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	close(w.changed)
	w.changed = make(chan struct{})
}

// view is what there is to see, and a channel that is closed when that changes.
func (w *watcher) view() (watchView, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.board.view(time.Now())
	v.Daemon = w.daemon
	return v, w.changed
}

// each shows what there is to see, now and after changes, with a pause after each look.
// It returns when ctx ends or with the error of show.
func (w *watcher) each(ctx context.Context, pause time.Duration, show func(watchView) error) error {
	for {
		v, changed := w.view()
		if err := show(v); err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow keeps up with the daemon until ctx ends.
func (w *watcher) follow(ctx context.Context) {
	for {
		err := w.connection(ctx)
		if ctx.Err() != nil {
			return
		}
		w.update(func() { w.daemon.Connected, w.daemon.Note = false, absence(err) })
		select {
		case <-time.After(reconnectPause):
		case <-ctx.Done():
			return
		}
	}
}

// absence tells a person why nothing moves.
func absence(err error) string {
	protocol, other := errors.AsType[*api.ProtocolError](err)
	if other {
		return protocol.Error()
	}
	if unsafe, ok := errors.AsType[*api.DirectoryError](err); ok {
		return unsafe.Error()
	}
	return "the daemon has gone; it is looked for, `pilothouse serve --detach` starts it"
}

// connection follows one daemon until it goes, and returns why.
func (w *watcher) connection(ctx context.Context) error {
	client, err := api.Connect(ctx, w.socket)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := context.WithCancel(ctx)
	events, err := client.Events(ctx)
	if err != nil {
		stop()
		return err
	}
	type next struct {
		event api.Event
		err   error
	}
	heard := make(chan next)
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			event, err := events.Next()
			select {
			case heard <- next{event, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
	defer func() {
		stop()
		_ = events.Close() // it was only read
		reading.Wait()
	}()
	if err := w.relist(ctx); err != nil {
		return err
	}
	var relist <-chan time.Time
	for {
		select {
		case n := <-heard:
			if n.err != nil {
				return n.err
			}
			if kind := n.event.Type; relist == nil && (kind == api.EventAccepted || kind == api.EventReset) {
				relist = time.After(relistPause)
			}
			w.update(func() { w.board.take(n.event, time.Now()) })
		case <-relist:
			relist = nil
			if err := w.relist(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// relist reads what the daemon has.
func (w *watcher) relist(ctx context.Context) error {
	health, err := w.client.Health(ctx)
	if err != nil {
		return err
	}
	calls, err := w.client.Calls(ctx)
	if err != nil {
		return err
	}
	live, err := w.client.Lanes(ctx)
	if err != nil {
		return err
	}
	w.update(func() {
		w.board.list(calls, live, time.Now())
		w.daemon = daemonView{Connected: true, Version: health.Version, PID: health.PID}
	})
	return nil
}

// cancelReason is what the results of cancelled lanes tell.
const cancelReason = "cancelled in pilothouse watch"

// cancel ends a lane of a call early, or with lane "" the whole call, in the orderly way.
func (w *watcher) cancel(ctx context.Context, call, lane string) error {
	if lane != "" {
		return w.client.CancelLane(ctx, call, lane, cancelReason)
	}
	_, err := w.client.CancelCall(ctx, call, cancelReason)
	return err
}

// transcript reads entries of a lane's transcript from an offset in bytes on, whole
// lines only, and returns where the next ones begin. It reads one page; more tells that
// there is another.
func (w *watcher) transcript(ctx context.Context, call, lane string, from int64) (entries []lanes.TranscriptEntry, next int64, more bool, err error) {
	body, err := w.client.Transcript(ctx, call, lane, from)
	if err != nil {
		return nil, from, false, fmt.Errorf("read the transcript: %w", err)
	}
	defer body.Close()
	lines := bufio.NewReader(body)
	for next = from; next-from < transcriptPage; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a line that is not complete yet comes again
			return entries, next, false, nil
		}
		if err != nil {
			return entries, next, false, fmt.Errorf("read the transcript: %w", err)
		}
		next += int64(len(line))
		var entry lanes.TranscriptEntry
		if json.Unmarshal(line, &entry) == nil { // it is a cache: what is damaged is left out
			entries = append(entries, entry)
		}
	}
	return entries, next, true, nil
}
