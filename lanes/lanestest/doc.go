// Package lanestest stages lanes for tests: a [Host] whose children are scripts
// in memory that print real pi events, and a [Stage] that plays the parent of an
// actor, records what it says and makes actors of its tree panic.
//
// Nothing here waits for time to pass. A script stops at a named point, the test
// awaits that it is there, does something, and lets it go on.
package lanestest

import "time"

// patience is for things that must happen; no test waits this long when all is well.
const patience = 30 * time.Second
