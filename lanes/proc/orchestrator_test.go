package proc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pilothouse/lanes/proc"
)

// envOrchestrator turns the test binary into an orchestrator of its own, which
// tests may kill. Its value holds the options as JSON.
const envOrchestrator = "PROC_TEST_ORCHESTRATOR"

// order is one line on the orchestrator's stdin: a child to start. With SpareFiles
// the start happens under a limit that leaves so many descriptors.
type order struct {
	Spec       proc.Spec
	SpareFiles *int
}

// answer is one line on its stdout.
type answer struct {
	Identity  proc.Identity
	Error     string
	IsStart   bool // the error is a *proc.StartError
	Temporary bool
	OpenFiles int // after the start
}

func orchestrate(options string) int {
	var o proc.Options
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return 2
	}
	s, err := proc.NewSpawner(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	answers := json.NewEncoder(os.Stdout)
	for orders := json.NewDecoder(os.Stdin); ; {
		var next order
		if orders.Decode(&next) != nil {
			break
		}
		_ = answers.Encode(obey(s, next))
	}
	if s.Close(context.Background()) != nil {
		return 1
	}
	return 0
}

func obey(s *proc.Spawner, next order) (a answer) {
	if next.SpareFiles != nil {
		var before unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &before)
		limit := before
		limit.Cur = uint64(openFiles() + *next.SpareFiles)
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before); a.OpenFiles = openFiles() }()
	}
	c, err := s.Start(context.Background(), next.Spec)
	if err != nil {
		startErr, is := errors.AsType[*proc.StartError](err)
		return answer{Error: err.Error(), IsStart: is, Temporary: is && startErr.Temporary()}
	}
	stdout := bufio.NewReader(c.Stdout())
	_, _ = stdout.ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return answer{Identity: c.Identity()}
}

func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries) - 1 // without the folder's own
}

// orchestrator is another process that starts children on request.
type orchestrator struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	in    *json.Encoder
	out   *json.Decoder
}

func newOrchestrator(t *testing.T, options proc.Options, as *syscall.Credential) *orchestrator {
	t.Helper()
	text, err := json.Marshal(map[string]any{"NoCgroup": options.NoCgroup, "StateDir": options.StateDir})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), envOrchestrator+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &orchestrator{t: t, cmd: cmd, stdin: in, in: json.NewEncoder(in), out: json.NewDecoder(out)}
}

func (o *orchestrator) send(next order) answer {
	o.t.Helper()
	if err := o.in.Encode(next); err != nil {
		o.t.Fatal(err)
	}
	var a answer
	if err := o.out.Decode(&a); err != nil {
		o.t.Fatal(err)
	}
	return a
}

// start starts a stub child that is ready when start returns.
func (o *orchestrator) start(spec proc.Spec) proc.Identity {
	o.t.Helper()
	spec.Args = append(spec.Args, "--ready")
	a := o.send(order{Spec: spec})
	if a.Error != "" {
		o.t.Fatal(a.Error)
	}
	return a.Identity
}

func (o *orchestrator) pid() int { return o.cmd.Process.Pid }
