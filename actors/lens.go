package actors

// Lane ids of a reviewer round, in lane order (spec: subagents 4.1).
const (
	laneGeneral      = "general"
	laneCorrectness  = "correctness"
	laneOrdering     = "ordering"
	laneVerification = "verification"
)

// ReviewerLanes returns the lane ids of a reviewer round with n reviewers. A
// single reviewer looks at everything; two or three divide the plan between
// lenses. n outside 1..3 is clamped. The caller owns the slice.
func ReviewerLanes(n int) []string {
	if n <= 1 {
		return []string{laneGeneral}
	}
	lanes := []string{laneCorrectness, laneOrdering, laneVerification}
	return lanes[:min(n, len(lanes))]
}

// Lens returns the text that narrows a reviewer lane to its share of the
// plan, or "" for a lane that has no lens: the general one and any unknown id.
func Lens(laneID string) string {
	switch laneID {
	case laneCorrectness:
		return "Requirements fit and correctness. Does what the plan proposes meet the request, its goals and its constraints, " +
			"and is every statement about the repository true: files, symbols, behaviour, formats, versions?"
	case laneOrdering:
		return "Architecture and order. Do the parts fit the structure that is there, is each dependency built before it is used, " +
			"does every intermediate step leave a working tree, and is anything done twice or forgotten between two steps?"
	case laneVerification:
		return "Verification, risk and evidence. Can each check really fail, does it observe the behaviour it claims to cover, " +
			"is every item covered, which risks have no answer, and which claims rest on nothing that was looked at?"
	}
	return ""
}
