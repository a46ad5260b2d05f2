package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pilothouse/store"
)

// runHelper is what another process does in a test; its arguments are the working
// directory, the run and a name for itself.
func runHelper(name string, args []string) int {
	ctx := context.Background()
	root, err := store.Find(ctx, args[0])
	if err != nil {
		return helperFailed(err)
	}
	dir, err := root.Run(args[1])
	if err != nil {
		return helperFailed(err)
	}
	switch name {
	case "own":
		err = own(ctx, dir, args[2])
	case "write":
		err = writeEverything(dir, args[2], writesEach)
	case "write on":
		err = writeEverything(dir, args[2], 1<<20)
	case "occupy":
		_, err = dir.Root.AdHoc().Occupy(ctx, args[2])
		fmt.Println("occupied")
		_, _ = fmt.Scanln()
	case "prune":
		fmt.Println("ready")
		_, _ = fmt.Scanln()
		_, err = dir.Prune(ctx, later)
	}
	if err != nil {
		return helperFailed(err)
	}
	return 0
}

func helperFailed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// own acquires the run and then answers each line of its input with whether the
// lease still counts. It ends without releasing, as if it had crashed.
func own(ctx context.Context, dir store.RunDir, session string) error {
	lease, err := dir.Acquire(ctx, session)
	var owned *store.OwnedError
	if errors.As(err, &owned) {
		fmt.Println("refused", owned.Reason)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Println("acquired", lease.Generation)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if lines.Text() == "write" {
			_, err := dir.MutateCheckpoint(lease, nil, pinned, store.HandoffOffered())
			fmt.Println("written", err)
			continue
		}
		fmt.Println("assert", lease.Assert())
	}
	return lines.Err()
}

const writesEach = 8

// writeEverything changes each kind of shared file n times.
func writeEverything(dir store.RunDir, name string, n int) error {
	for i := range n {
		id := fmt.Sprintf("%s-%d", name, i)
		_, err := dir.Root.UpdateConfig(func(c *store.Config) error {
			count := 0
			if c.RefsRoot != nil {
				count, _ = strconv.Atoi(*c.RefsRoot)
			}
			next := strconv.Itoa(count + 1)
			c.RefsRoot = &next
			return nil
		})
		if err != nil {
			return err
		}
		if _, err := dir.AppendDecision(store.Decision{Question: id, Answer: strings.Repeat("x", 5000)}, pinned); err != nil {
			return err
		}
		_, err = dir.MutateCheckpoint(nil, nil, pinned, func(cp *store.Checkpoint) error {
			cp.AnsweredQuestions = append(cp.AnsweredQuestions, store.AnsweredQuestion{
				QuestionID: id, Source: store.AnswerUser, AnsweredAt: store.Stamp(pinned),
			})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// process is a test binary that runs a helper.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startProcess(t testing.TB, helper string, dir store.RunDir, name string) *process {
	t.Helper()
	return startProcessIn(t, nil, nil, helper, dir, name)
}

// startProcessIn is startProcess with further variables and attributes.
func startProcessIn(t testing.TB, env []string, attributes *syscall.SysProcAttr, helper string, dir store.RunDir, name string) *process {
	t.Helper()
	command := exec.Command(os.Args[0], dir.Root.Workdir, dir.ID, name)
	command.Env = append(append(os.Environ(), helperVariable+"="+helper), env...)
	command.SysProcAttr = attributes
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return &process{Cmd: command, in: in, out: bufio.NewScanner(out)}
}

// answer returns the next line the process prints.
func (p *process) answer(t testing.TB) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("the process ended: %v", p.out.Err())
	}
	return p.out.Text()
}

func (p *process) ask(t testing.TB, line string) string {
	t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
	return p.answer(t)
}
