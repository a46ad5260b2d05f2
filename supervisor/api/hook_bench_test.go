package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

// BenchmarkHook measures what a session waits for before each tool runs: the way over
// the socket, the verdict, and back. It reports the median and the slowest of a hundred.
// A session alone calls one tool after the other; of many, each calls ten a second.
func BenchmarkHook(b *testing.B) {
	for _, test := range []struct {
		name           string
		sessions       int
		planMode, runs bool
	}{
		{"alone/nothing on", 1, false, false},
		{"alone/plan mode", 1, true, false},
		{"alone/planning run", 1, false, true},
		{"64 sessions/both", 64, true, true},
	} {
		b.Run(test.name, func(b *testing.B) {
			sessions := hookGround(b, test.sessions, test.planMode, test.runs)
			event := json.RawMessage(`{"toolName":"bash","toolCallId":"c1","input":{"command":"cd src && git log --oneline | head -20 && rg -n 'func main' -g '*.go'"}}`)
			var mu sync.Mutex
			var took []time.Duration
			b.ResetTimer()
			var wg sync.WaitGroup
			for n, session := range sessions {
				wg.Go(func() {
					time.Sleep(pause * time.Duration(n) / time.Duration(len(sessions)))
					pace := time.NewTicker(pause)
					defer pace.Stop()
					for range (b.N + len(sessions) - 1) / len(sessions) {
						if len(sessions) > 1 {
							<-pace.C
						}
						began := time.Now()
						reply, err := session.client.Hook(b.Context(), session.Session, "tool_call", event)
						if err != nil || reply.Block != nil {
							b.Errorf("%+v, %v", reply, err)
							return
						}
						mu.Lock()
						took = append(took, time.Since(began))
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			slices.Sort(took)
			if len(took) > 0 {
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			}
		})
	}
}

// pause is the time between two tools of one of many sessions.
const pause = 100 * time.Millisecond

// piProcess is a session with a connection of its own.
type piProcess struct {
	supervisor.Session
	client *api.Client
}

// hookGround is a daemon with sessions in one repository.
func hookGround(b *testing.B, number int, planMode, runs bool) []piProcess {
	b.Helper()
	dir, err := os.MkdirTemp("", "ph") // short: a socket fits below it
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	workdir := filepath.Join(dir, "workspace")
	if out, err := exec.Command("git", "init", "-q", workdir).CombinedOutput(); err != nil {
		b.Fatalf("git init: %v\n%s", err, out)
	}
	system, err := supervisor.New(supervisor.Options{SessionsDir: filepath.Join(dir, "sessions")})
	if err != nil {
		b.Fatal(err)
	}
	server, err := api.NewServer(api.Options{System: system, Spool: filepath.Join(dir, "calls"), Version: "1.2.3"})
	if err != nil {
		b.Fatal(err)
	}
	socket, err := api.Listen(b.Context(), filepath.Join(dir, "run", "api.sock"))
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(socket) }()
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx, 0), <-served, system.Close(ctx), socket.Release()); err != nil {
			b.Errorf("end the daemon: %v", err)
		}
		server.Wait()
	})
	var sessions []piProcess
	for n := range number {
		client, err := api.Connect(b.Context(), filepath.Join(dir, "run", "api.sock"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(client.Close)
		session := supervisor.Session{ID: fmt.Sprintf("s%d", n), Workdir: workdir}
		if planMode {
			if _, err := client.Converse(b.Context(), session, supervisor.Screen{}, supervisor.KindCommand, "plan", nil); err != nil {
				b.Fatal(err)
			}
		}
		if runs {
			start := supervisor.PlansAction{Action: "start-run", Topic: session.ID, Skill: "plan-normal", RequestText: "x"}
			if _, err := client.Plans(b.Context(), session, start); err != nil {
				b.Fatal(err)
			}
		}
		sessions = append(sessions, piProcess{session, client})
	}
	return sessions
}
