package crash_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"pilothouse/store"
)

// note is one line from a driver to its parent. Trying comes before a call, the
// others after the acknowledgement that they tell of.
type note struct {
	Kind kind   `json:"kind"`
	Run  string `json:"run,omitempty"`
	// ID of a question, decision or round.
	ID string `json:"id,omitempty"`
	// Text is an answer, the digest of a lane's answer, or what went wrong.
	Text string `json:"text,omitempty"`
	// Lane and Status of a lane that has ended.
	Lane   string `json:"lane,omitempty"`
	Status string `json:"status,omitempty"`
	// Lanes of a round that has started.
	Lanes []string `json:"lanes,omitempty"`
	// Flow is where the workflow stands, or will stand when what is tried is done.
	Flow *flow `json:"flow,omitempty"`
	// Revision of the checkpoint as acknowledged.
	Revision int `json:"revision,omitempty"`
}

type kind string

const (
	ready       kind = "ready"        // the system is open
	runStarted  kind = "run started"  // Flow
	asked       kind = "asked"        // ID
	answering   kind = "answering"    // ID, Text: about to
	answered    kind = "answered"     // ID, Text
	dropping    kind = "dropping"     // ID: about to
	dropped     kind = "dropped"      // ID
	decided     kind = "decided"      // ID
	stepping    kind = "stepping"     // Text, Flow: about to
	stepped     kind = "stepped"      // Text, Flow, Revision
	begun       kind = "round begun"  // ID, Lanes
	laneEnded   kind = "lane ended"   // ID, Lane, Status, Text
	roundEnded  kind = "round ended"  // ID
	consolidate kind = "consolidated" // ID
	refused     kind = "refused"      // Text: the state does not allow it
	fault       kind = "fault"        // Text: this must not happen
)

// flow is the part of a checkpoint that one worker alone changes, step by step.
type flow struct {
	Phase     store.Phase
	Plan      int // version
	Approved  bool
	Done      int // verification items
	Tokens    int
	Condition bool
	Reviewed  int // rounds of the implementation review
}

func flowOf(cp store.Checkpoint) flow {
	f := flow{Phase: cp.Phase}
	if cp.Plan != nil {
		f.Plan = cp.Plan.Version
	}
	if e := cp.Execution; e != nil {
		f.Approved, f.Done, f.Tokens = e.Approval != nil, len(e.DoneVCIDs), e.Usage.InToks
	}
	if r := cp.ImplementationReview; r != nil {
		f.Condition, f.Reviewed = r.TerminationCondition != "", r.CompletedRounds
	}
	return f
}

// notes writes notes. Each is one write of less than a pipe takes in one piece, so a
// kill leaves whole lines.
type notes struct {
	mu  sync.Mutex
	out io.Writer
}

func (n *notes) write(m note) {
	line, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	n.mu.Lock()
	_, err = n.out.Write(append(line, '\n'))
	n.mu.Unlock()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nobody reads the notes:", err)
		os.Exit(1)
	}
}
