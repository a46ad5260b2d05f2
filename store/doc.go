// Package store holds everything pilothouse keeps on disk: where the state of a
// workspace lives, its configuration, runs, ledgers, checkpoints, review texts,
// round records and the ownership of a run.
//
// The shared files are byte-compatible with the ones the Pi extension writes, so
// both can work on one repository in turn. Three promises hold for each of them:
// a reader never sees half a file, a write that was acknowledged survives a power
// loss, and a file that cannot be understood is never overwritten. What the shared
// formats have no room for lives in files of our own in a folder named pilothouse
// beside them.
package store
