package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// storyNote is what the process of a story tells of it, through a pipe that outlives it.
type storyNote struct {
	Kind string          `json:"kind"`
	Text string          `json:"text,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

// The kinds of notes. An answer that a session has got is acknowledged: from then on it
// must survive anything.
const (
	noteBoundary  = "boundary"
	noteFault     = "fault"     // the story is not as it should be
	noteBegun     = "begun"     // there is something to do
	noteEntry     = "entry"     // the session keeps Data of the type Text
	noteShown     = "shown"     // a dialog, Text is its question
	noteAnswered  = "answered"  // the question with the id Text
	noteApproved  = "approved"  // at the time Text
	noteReviewed  = "reviewed"  // a lane has ended complete; Text is what its child wrote into the journal
	noteSpending  = "spending"  // a turn of the execution
	noteSpent     = "spent"     // and durable
	notePaused    = "paused"    // and the user has written
	noteCompleted = "completed" // the run
	noteOver      = "over"      // the process has ended the story
	storyPipe     = 3           // descriptor of the pipe
)

type storyNotes struct {
	mu  sync.Mutex
	out *os.File
}

func (n *storyNotes) write(kind, text string, data json.RawMessage) {
	line, err := json.Marshal(storyNote{kind, text, data})
	if err != nil {
		panic(err) // strings, and JSON that was read before
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := n.out.Write(append(line, '\n')); err != nil {
		panic(fmt.Errorf("tell the test: %w", err))
	}
}
