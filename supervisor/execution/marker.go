package execution

import "strings"

// Marker is what an agent reports inside a message (spec: execution 5.1).
type Marker struct {
	Kind MarkerKind
	ID   string
}

// MarkerKind is what a marker says of its id.
type MarkerKind string

// The kinds of markers. The last two are also the values of an implementation
// item's status in the checkpoint.
const (
	MarkerDone        MarkerKind = "done"        // [DONE:VC-<digits>]
	MarkerCurrent     MarkerKind = "current"     // [I-<digits>:current]
	MarkerImplemented MarkerKind = "implemented" // [I-<digits>:implemented]
	MarkerValidating  MarkerKind = "validating"  // [I-<digits>:validating]
)

// longestMarker bounds, in bytes, what is kept of a message that may end inside a
// marker.
const longestMarker = 64

// Scanner finds markers in the text of one agent, message after message. A marker
// counts also when it is split: over lines, text blocks or messages.
type Scanner struct {
	carry string // the end of the last message, when a marker may go on in the next
}

// Scan returns the markers of the next message, in order.
func (s *Scanner) Scan(text string) []Marker {
	text = s.carry + text
	s.carry = ""
	var found []Marker
	for {
		start := strings.IndexByte(text, '[')
		if start < 0 {
			return found
		}
		text = text[start+1:]
		end := strings.IndexAny(text, "[]")
		switch {
		case end < 0:
			if len(text) < longestMarker {
				s.carry = "[" + text
			}
			return found
		case text[end] == '[':
			continue
		}
		if marker, ok := parseMarker(strings.NewReplacer("\r", "", "\n", "").Replace(text[:end])); ok {
			found = append(found, marker)
		}
		text = text[end+1:]
	}
}

// parseMarker reads what stands between the brackets.
func parseMarker(text string) (Marker, bool) {
	before, after, _ := strings.Cut(text, ":")
	if before == "DONE" {
		return Marker{MarkerDone, after}, isID(after, checkKind)
	}
	switch kind := MarkerKind(after); kind {
	case MarkerCurrent, MarkerImplemented, MarkerValidating:
		return Marker{kind, before}, isID(before, itemKind)
	}
	return Marker{}, false
}
