package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

// backend does the work of a command: the actor tree of a running daemon, or one in
// this process. Results, errors and what is watched are the same either way.
type backend interface {
	Refine(context.Context, supervisor.RefineRequest, supervisor.Watch) (supervisor.RoundResult, error)
	AnalyzeRefs(context.Context, supervisor.AnalyzeRequest, supervisor.Watch) (supervisor.RoundResult, error)
	Plans(context.Context, supervisor.Session, supervisor.PlansAction) (any, error)
	RecentRuns(ctx context.Context, session supervisor.Session, limit int) (runs []supervisor.RunInfo, more int, err error)
	Show(context.Context, supervisor.Session, string) (supervisor.RunDetail, error)
}

// withBackend runs f with the daemon of this user, or with an actor system of its own
// when none runs or --local is given. A directory that others control holds no daemon
// of ours, and must not keep anybody from working either.
func (a *app) withBackend(ctx context.Context, f func(backend) error) error {
	if !a.local {
		client, err := api.Connect(ctx, socketPath())
		if err == nil {
			defer client.Close()
			return f(client)
		}
		if unsafe, ok := errors.AsType[*api.DirectoryError](err); ok {
			fmt.Fprintf(a.err, "note: working without a daemon: %v\n", unsafe)
		} else if !errors.Is(err, api.ErrNoDaemon) {
			return err
		}
	}
	return a.withSystem(func(system *supervisor.System) error { return f(system) })
}

// socketPath is where the daemon listens: $PILOTHOUSE_SOCKET, else this user's own place.
func socketPath() string {
	if path := os.Getenv("PILOTHOUSE_SOCKET"); path != "" {
		return path
	}
	return api.DefaultSocket()
}
