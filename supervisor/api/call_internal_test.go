package api

import (
	"errors"
	"testing"
	"time"
)

// A disk that is slow or hangs holds up who claims a result, and nobody who looks at it.
func TestACallIsSeenWhileAClaimOfItIsBeingWritten(t *testing.T) {
	t.Parallel()
	c := newCall(record{Call: Call{ID: "c", State: StateFinished}, Last: &Event{Call: "c", Type: EventResult}})
	writing, written := make(chan struct{}), make(chan struct{})
	claimed := make(chan error)
	go func() {
		_, err := c.acknowledge(time.Now(), func(record) error {
			close(writing)
			<-written
			return nil
		})
		claimed <- err
	}()
	<-writing
	seen := make(chan Call)
	go func() { seen <- c.describe() }()
	select {
	case call := <-seen:
		if call.State != StateFinished {
			t.Errorf("the call is %s before the claim is durable", call.State)
		}
	case <-time.After(time.Minute):
		t.Fatal("the call cannot be looked at while its claim is being written")
	}
	second := make(chan error)
	go func() {
		_, err := c.acknowledge(time.Now(), func(record) error {
			t.Error("a second claim is written")
			return nil
		})
		second <- err
	}()
	close(written)
	if err := <-claimed; err != nil {
		t.Errorf("the claim: %v", err)
	}
	var delivered *DeliveredError
	if err := <-second; !errors.As(err, &delivered) {
		t.Errorf("the second claim: %v", err)
	}
	if call := c.describe(); call.State != StateDelivered {
		t.Errorf("the call is %s after the claim", call.State)
	}
}
