package lanes

// Messages between a role actor, its batches and their lanes. All are plain
// values.
type (
	// Warm asks a batch (and the batch its lanes) to start children ahead of
	// their task. It may be left out; [Begin] starts what is not started.
	Warm struct{}

	// Begin lets a batch work: role actor → batch → lanes.
	Begin struct{}

	// Cancel ends a batch or lane; each lane still reports [Finished].
	Cancel struct{ Reason string }

	// CancelLane ends one lane of a round or batch, as [Cancel] does; the others go on.
	CancelLane struct{ LaneID, Reason string }

	// Finished is the one terminal report of a lane: lane → batch → role actor.
	Finished struct{ Result Result }
)
