package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
)

// planMode is the plan mode of one session (spec: plan mode). It is a value: every
// transition returns the next one.
type planMode struct {
	Active bool `json:"active"`
	// Generation counts transitions, so that whoever decided something in one state does
	// not change another: a review that was open while the user left and came back, a
	// message that failed after the user had decided anew.
	Generation int `json:"generation"`
	// Approved is the digest of the plan that was approved last, "" for none.
	Approved string `json:"approved,omitempty"`
}

// enter starts planning; changed is false when the session was planning already.
func (m planMode) enter() (next planMode, changed bool) {
	if m.Active {
		return m, false
	}
	return planMode{Active: true, Generation: m.Generation + 1, Approved: m.Approved}, true
}

// leave ends planning by the user's own word.
func (m planMode) leave() (next planMode, changed bool) {
	if !m.Active {
		return m, false
	}
	return planMode{Generation: m.Generation + 1, Approved: m.Approved}, true
}

// approve ends planning with the plan of this digest, if its review began in this very
// state.
func (m planMode) approve(reviewed planMode, digest string) (next planMode, changed bool) {
	if !m.Active || m.Generation != reviewed.Generation {
		return m, false
	}
	return planMode{Generation: m.Generation + 1, Approved: digest}, true
}

// restore takes the transition to entered back, unless another came after it.
func (m planMode) restore(before, entered planMode) (next planMode, changed bool) {
	if m.Generation != entered.Generation || m.Active == before.Active {
		return m, false
	}
	return planMode{Active: before.Active, Generation: m.Generation + 1, Approved: before.Approved}, true
}

// planDigest identifies the exact revision of a plan.
func planDigest(plan string) string {
	sum := sha256.Sum256([]byte(plan))
	return hex.EncodeToString(sum[:])
}
