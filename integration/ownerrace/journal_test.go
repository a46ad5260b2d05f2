package ownerrace_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"testing"
)

// What a racer notes, in this order.
const (
	acquired  = "acquired"  // the run is held
	releasing = "releasing" // it is given back next
	released  = "released"  // it was given back, which others may have noted by then
)

// holding is what the journal tells of one owner.
type holding struct {
	racer      string
	token      string
	generation int
	notes      []string
}

func (h holding) noted(what string) bool { return slices.Contains(h.notes, what) }

// readJournal returns the owners in their order.
func readJournal(t *testing.T, path string) []holding {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []holding
	known := map[string]int{} // by token
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var what string
		var h holding
		if _, err := fmt.Sscan(lines.Text(), &what, &h.racer, &h.token, &h.generation); err != nil {
			t.Fatalf("journal line %q: %v", lines.Text(), err)
		}
		i, again := known[h.token]
		if what == acquired {
			if again {
				t.Fatalf("token %s was given out twice", h.token)
			}
			i = len(all)
			known[h.token] = i
			all = append(all, h)
		} else if !again {
			t.Fatalf("journal line %q: nobody has acquired with this token", lines.Text())
		}
		if what == releasing && i != len(all)-1 {
			t.Errorf("%s held generation %d on while %s had acquired", h.racer, h.generation, all[len(all)-1].racer)
		}
		all[i].notes = append(all[i].notes, what)
	}
	return all
}

// chain is what follows from the generations.
type chain struct{ takeovers, releases, unseen int }

// checkChain checks that an owner was followed only after it had given the run back or
// was killed, and that the generations tell which. Owners that were killed before
// they could note anything are seen as gaps only.
func checkChain(t *testing.T, all []holding, killed map[string]bool) chain {
	t.Helper()
	var c chain
	for i, h := range all {
		if i == 0 {
			c.unseen += h.generation - 1
			continue
		}
		before := all[i-1]
		switch {
		case !before.noted(releasing) && !killed[before.racer]:
			t.Errorf("%s lived and held generation %d, %s acquired %d", before.racer, before.generation, h.racer, h.generation)
		case !before.noted(releasing) && h.generation <= before.generation:
			t.Errorf("%s was killed with generation %d, %s took over with %d", before.racer, before.generation, h.racer, h.generation)
		case !before.noted(releasing), !before.noted(released) && h.generation > before.generation:
			c.takeovers++
			c.unseen += h.generation - before.generation - 1
		default: // in an orderly way, and the count starts again
			c.releases++
			c.unseen += h.generation - 1
		}
	}
	if c.unseen > len(killed) {
		t.Errorf("the generations tell of %d unseen owners, only %d racers were killed", c.unseen, len(killed))
	}
	return c
}
