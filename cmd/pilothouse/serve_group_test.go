package main

import (
	"errors"
	"slices"
	"testing"
)

func TestTheFirstPartThatEndsEndsTheGroup(t *testing.T) {
	t.Parallel()
	var g group
	var interrupted []int
	first := errors.New("the first")
	for i := range 3 {
		told := make(chan struct{})
		g.add(func() error {
			if i == 1 {
				return first
			}
			<-told
			return errors.New("a later one")
		}, func() {
			interrupted = append(interrupted, i)
			close(told)
		})
	}
	if err := g.run(); !errors.Is(err, first) {
		t.Errorf("run returned %v", err)
	}
	if !slices.Equal(interrupted, []int{0, 1, 2}) {
		t.Errorf("interrupted %v", interrupted)
	}
}
