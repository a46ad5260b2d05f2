package proc_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"testing"

	"pilothouse/lanes/proc"
)

// echo is a child that answers each line, and leaves at the end of its stdin.
var echo = proc.Spec{Path: "/bin/sh", Args: []string{"-c", `while read -r line; do echo "got $line"; done; echo end`}}

func TestAChildIsTalkedToUntilItsStdinIsClosed(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	c := start(t, s, echo)
	answers := bufio.NewReader(c.Stdout())
	for i := range 3 {
		if err := c.Say(fmt.Appendf(nil, "line %d\n", i)); err != nil {
			t.Fatal(err)
		}
		if got, err := answers.ReadString('\n'); err != nil || got != fmt.Sprintf("got line %d\n", i) {
			t.Fatalf("answer %d is %q, %v", i, got, err)
		}
	}
	if err := c.Say([]byte("last\n")); err != nil {
		t.Fatal(err)
	}
	c.HangUp()
	c.HangUp()
	if err := c.Say([]byte("too late\n")); !errors.Is(err, proc.ErrHungUp) {
		t.Errorf("after the end: %v, want %v", err, proc.ErrHungUp)
	}
	rest := new(bytes.Buffer)
	if _, err := rest.ReadFrom(answers); err != nil || rest.String() != "got last\nend\n" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
	outcome(t, c.Wait(), proc.Exit{})
}

func TestWhatAChildDoesNotReadIsBounded(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	spec, _ := stub(t, "--then", "hang")
	c, stdout := startReady(t, s, spec)
	piece := bytes.Repeat([]byte("x"), 8<<20)
	var err error
	for range 6 { // one is being written, four wait
		if err = c.Say(piece); err != nil {
			break
		}
	}
	if !errors.Is(err, proc.ErrUnread) {
		t.Errorf("got %v, want %v", err, proc.ErrUnread)
	}
	c.Kill()
	_, exit := finishReading(t, c, stdout)
	outcome(t, exit, proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{"kill"}})
	if err := c.Say([]byte("x")); !errors.Is(err, proc.ErrHungUp) {
		t.Errorf("of a child that is gone: %v, want %v", err, proc.ErrHungUp)
	}
}
