package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestErrorsComeThroughTheSocketAsTheyWere(t *testing.T) {
	t.Parallel()
	errs := []error{
		&supervisor.InputError{Message: "--role \"x\" is <neither>"},
		&actors.GateError{Gate: actors.GateMode, Role: actors.Criticizer},
		&store.StateError{Step: "approve", Reason: "no plan"},
		&store.OwnedError{RunID: "r", Host: "h", PID: 7, SessionID: "s", Reason: store.OwnedAlive},
		&store.LostOwnerError{RunID: "r", Reason: "taken"},
		&supervisor.CancelledError{Reason: "interrupted"},
		&supervisor.LostRunError{RunID: "r", Reason: "panic"},
		&supervisor.ClosedError{},
		&store.CorruptError{Path: "/x", Reason: "invalid JSON"},
		&store.RepositoryError{Dir: "/x", Message: "dubious"},
		&lanes.CommandError{Words: "pi", Reason: "no program"},
		&supervisor.NoConversationError{ID: "talk-1", Reason: "it was aborted"},
		&supervisor.ConversationBusyError{ID: "talk-1"},
		&LostCallError{Call: "c", RunID: "r", RoundID: "o"},
		&supervisor.NoLaneError{RunID: "r", RoundID: "o", LaneID: "l"},
		&DeliveredError{Call: "c", At: time.Unix(1700000000, 0).UTC()},
	}
	if len(errs) != len(kinds) {
		t.Errorf("%d of %d kinds are tried", len(errs), len(kinds))
	}
	for _, err := range errs {
		for _, met := range []error{err, fmt.Errorf("do it: %w", err)} {
			data, encoding := encode(problemOf(met))
			if encoding != nil {
				t.Fatal(encoding)
			}
			came := &Problem{}
			if err := json.Unmarshal(data, came); err != nil {
				t.Fatal(err)
			}
			if came.Error() != met.Error() {
				t.Errorf("%q came as %q", met.Error(), came.Error())
			}
			if diff := cmp.Diff(err, errors.Unwrap(came)); diff != "" {
				t.Errorf("%T (-sent +came):\n%s", err, diff)
			}
			if came.Status < 400 || came.Title == "" {
				t.Errorf("%T has status %d and title %q", err, came.Status, came.Title)
			}
		}
		// Every field of the error travels.
		v := reflect.ValueOf(err).Elem()
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%T.%s was not tried", err, v.Type().Field(i).Name)
			}
		}
	}
}

func TestAnUnknownErrorKeepsItsWords(t *testing.T) {
	t.Parallel()
	p := problemOf(errors.New("the disk is full"))
	if p.Error() != "the disk is full" || p.Status != 500 || p.Unwrap() != nil {
		t.Errorf("%+v", p)
	}
	if again := problemOf(fmt.Errorf("more: %w", p)); again != p {
		t.Errorf("a problem became %+v", again)
	}
}
