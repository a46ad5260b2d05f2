// Package lanes runs the lanes of a round: a batch actor starts at most three
// lane actors side by side, a lane actor turns one [Spec] into one [Result]
// through one or more attempts, each of them one pi child.
//
// The package guarantees one thing above all: every lane that a batch accepts
// reports exactly one [Finished], whatever happens to its child, to its actor
// or to the batch (the batch reports for a lane whose actor died).
//
// It knows pi (argv, event stream, processes) and nothing of plans, runs or
// files of the workspace; those belong to packages actors, supervisor and store.
package lanes
