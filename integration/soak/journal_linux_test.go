package soak_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// played is what one child has noted of itself.
type played struct {
	token    string
	conduct  string
	fed      bool // it has read its task to the end
	answers  int  // its answer ends with this delta; 0 when it never came to that
	answered bool // the answer is written
	printed  int  // deltas that are written for certain
}

// journal reads what the children of a lane have noted, in the order of their
// births.
func journal(t *testing.T, dir, lane string) []played {
	t.Helper()
	var children []played
	for n := 1; ; n++ {
		data, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%s.%d", lane, n)))
		if os.IsNotExist(err) {
			return children
		}
		if err != nil {
			t.Fatal(err)
		}
		var p played
		for line := range strings.Lines(string(data)) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch word {
			case "token":
				p.token = rest
			case "conduct":
				p.conduct = rest
			case "fed":
				p.fed = true
			case "answers":
				_, err = fmt.Sscan(rest, &p.answers)
			case "answered":
				p.answered, p.printed = true, p.answers
			case "printed":
				_, err = fmt.Sscan(rest, &p.printed)
			}
			if err != nil {
				t.Fatalf("journal of %s: %q: %v", lane, line, err)
			}
		}
		children = append(children, p)
	}
}
