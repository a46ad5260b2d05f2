package load_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

// sessionVariable makes this program a session that asks the daemon on its socket.
const sessionVariable = "PILOTHOUSE_LOAD_SESSION"

const pauseOfSession = 100 * time.Millisecond // between two tool calls, less than an agent makes

// plainEvery is how often a session asks how the daemon is, for comparison: after so many
// tool calls.
const plainEvery = 5

// sessions ask the daemon before ten tool calls a second each, and now and then how it is.
// They are processes of their own, as Pi is one: what the test is busy with, who follows
// all rounds, is none of their time.
type sessions struct {
	g    *ground
	list []*session

	mu    sync.Mutex
	trips roundTrips // since they were taken
	asked []int      // of each session, since then
}

type session struct {
	cmd     *exec.Cmd
	stdin   io.Closer // it ends with it
	stderr  bytes.Buffer
	reading sync.WaitGroup
}

// begin starts so many sessions, which end with the test.
func (g *ground) begin(number int, workdir string) *sessions {
	g.t.Helper()
	all := &sessions{g: g, asked: make([]int, number)}
	for n := range number {
		s := &session{cmd: exec.Command(os.Args[0], workdir, fmt.Sprint(n), fmt.Sprint(number))}
		s.cmd.Env, s.cmd.Stderr = append(g.env[:len(g.env):len(g.env)], sessionVariable+"="+g.socket), &s.stderr
		stdin, err := s.cmd.StdinPipe()
		if err != nil {
			g.t.Fatal(err)
		}
		stdout, err := s.cmd.StdoutPipe()
		if err != nil {
			g.t.Fatal(err)
		}
		if err := s.cmd.Start(); err != nil {
			g.t.Fatal(err)
		}
		s.stdin = stdin
		s.reading.Go(func() { all.read(n, stdout) })
		all.list = append(all.list, s)
	}
	return all
}

// read takes down what a session measures.
func (a *sessions) read(n int, stdout io.Reader) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var kind string
		var took time.Duration
		if _, err := fmt.Sscan(lines.Text(), &kind, &took); err != nil {
			a.g.t.Errorf("session %d says %q: %v", n, lines.Text(), err)
			return
		}
		a.mu.Lock()
		if kind == "hook" {
			a.trips.hooks = append(a.trips.hooks, took)
			a.asked[n]++
		} else {
			a.trips.plain = append(a.trips.plain, took)
		}
		a.mu.Unlock()
	}
}

// awaitEach returns when every session has asked so often since the last was taken.
func (a *sessions) awaitEach(often int) {
	a.g.t.Helper()
	a.g.await("all sessions to ask", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return slices.Min(a.asked) >= often
	})
}

// taken is what was measured since it was taken before.
func (a *sessions) taken() roundTrips {
	a.mu.Lock()
	defer a.mu.Unlock()
	trips := a.trips
	a.trips, a.asked = roundTrips{}, make([]int, len(a.asked))
	slices.Sort(trips.hooks)
	slices.Sort(trips.plain)
	return trips
}

// end ends the sessions. All of their questions must have been answered.
func (a *sessions) end() {
	for n, s := range a.list {
		_ = s.stdin.Close() // it may have ended
		s.reading.Wait()
		if err := s.cmd.Wait(); err != nil {
			a.g.t.Errorf("session %d: %v: %s", n, err, s.stderr.String())
		}
	}
}

// sessionMain is the program of a session.
func sessionMain(socket string, args []string) (status int) {
	var n, number int
	_, err := fmt.Sscan(args[1]+" "+args[2], &n, &number)
	if err == nil {
		err = ask(socket, args[0], n, number)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// ask asks as the n-th of a number of sessions until stdin ends.
func ask(socket, workdir string, n, number int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var reading sync.WaitGroup
	reading.Go(func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	})
	client, err := api.Connect(context.Background(), socket)
	if err != nil {
		return err
	}
	defer client.Close()
	self := supervisor.Session{ID: fmt.Sprintf("hooks-%d", n), Workdir: workdir}
	event := json.RawMessage(`{"toolName":"bash","toolCallId":"1","input":{"command":"git status"}}`)
	time.Sleep(time.Duration(n) * pauseOfSession / time.Duration(number)) // they do not ask in step
	next := time.NewTicker(pauseOfSession)                                // nor after they have all waited
	defer next.Stop()
	for calls := 1; ; calls++ {
		select {
		case <-next.C:
		case <-ctx.Done():
			reading.Wait()
			return nil
		}
		began := time.Now()
		if _, err := client.Hook(context.Background(), self, "tool_call", event); err != nil {
			return fmt.Errorf("a hook was not answered: %w", err)
		}
		fmt.Println("hook", int64(time.Since(began)))
		if calls%plainEvery != 0 {
			continue
		}
		began = time.Now()
		if _, err := client.Health(context.Background()); err != nil {
			return fmt.Errorf("a question was not answered: %w", err)
		}
		fmt.Println("plain", int64(time.Since(began)))
	}
}
