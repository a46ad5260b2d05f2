// Package supervisor decides. The registry finds or starts the supervisor of a
// run; the supervisor of a run owns it, and nobody else changes its state.
//
//	registry                       finds or starts runs, answers listings
//	└─ run-<runId>                 owns the run and its rounds
//	   ├─ ownership                holds owner.json
//	   ├─ checkpoint               the only writer of the run's files
//	   └─ round-<roundId>          a role actor of package actors
//	      └─ batch-<k> └─ lane-<laneId>
//
// State changes only inside Receive. Files, git and processes are worked on by
// goroutines that report back as messages, so no actor ever blocks.
package supervisor
