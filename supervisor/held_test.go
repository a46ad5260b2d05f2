package supervisor

import (
	"testing"

	"pilothouse/store"
)

func TestALeaseThatComesAfterTheEndOfItsActorIsNotKept(t *testing.T) {
	t.Parallel()
	var h held
	first, second := &store.Lease{}, &store.Lease{}
	if !h.put(first) || h.take(false) != first || h.take(false) != nil {
		t.Error("a lease is not taken once")
	}
	if !h.put(second) || h.take(true) != second {
		t.Error("a lease is not taken at the end")
	}
	if h.put(first) || h.take(true) != nil {
		t.Error("a lease was kept after the end")
	}
}
