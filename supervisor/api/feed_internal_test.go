package api

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func numbers(v view) []int64 {
	var all []int64
	for _, e := range v.entries {
		all = append(all, e.number)
	}
	return all
}

func TestAFeedKeepsTheNewestOfEachKey(t *testing.T) {
	t.Parallel()
	f := newFeed(0)
	f.add("", Event{Type: "1"})
	f.add("a", Event{Type: "2"})
	f.add("b", Event{Type: "3"})
	f.add("a", Event{Type: "4"})
	if got := numbers(f.since(0)); !slices.Equal(got, []int64{1, 3, 4}) {
		t.Errorf("events %v", got)
	}
	v := f.since(4)
	if got := numbers(v); !slices.Equal(got, []int64{4}) || v.next != 5 || v.gap || v.ended {
		t.Errorf("from 4: %v %+v", got, v)
	}
	select {
	case <-f.since(5).changed:
		t.Error("changed without a change")
	default:
	}
	changed := f.since(5).changed
	f.end(Event{Type: "5"})
	<-changed
	if v := f.since(1000); !slices.Equal(numbers(v), []int64{5}) || !v.ended {
		t.Errorf("the last event is not given to a reader that is ahead: %+v", v)
	}
	f.settle(Event{Type: "6"})
	for _, from := range []int64{0, 5, 1000} {
		if v := f.since(from); !slices.Equal(numbers(v), []int64{5}) || v.entries[0].event.Type != "6" || !v.ended {
			t.Errorf("settled, from %d: %+v", from, v)
		}
	}
}

// A reader that follows a feed sees, whatever its pace, rising numbers, the newest
// event of every key, all events without a key, and is told when some went.
func TestAReaderOfAFeedMissesOnlyWhatIsOutOfDate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 8).Draw(t, "limit")
		f := newFeed(limit)
		newest := map[string]int64{}
		var keyless []int64
		seen := map[int64]bool{}
		var next, highest int64
		next = 1
		gap := false
		read := func() {
			v := f.since(next)
			gap = gap || v.gap
			for _, e := range v.entries {
				if e.number <= highest {
					t.Fatalf("event %d after %d", e.number, highest)
				}
				highest = e.number
				seen[e.number] = true
			}
			next = v.next
		}
		for _, step := range rapid.SliceOf(rapid.SampledFrom([]string{"", "a", "b", "c", "read"})).Draw(t, "steps") {
			switch step {
			case "read":
				read()
			case "":
				keyless = append(keyless, f.add("", Event{}))
			default:
				newest[step] = f.add(step, Event{})
			}
			if limit > 0 && f.entries.Len() > limit {
				t.Fatalf("%d events are kept, %d may be", f.entries.Len(), limit)
			}
		}
		keyless = append(keyless, f.end(Event{}))
		read()
		for _, number := range keyless {
			if !seen[number] && !gap {
				t.Fatalf("event %d was missed and nobody said so", number)
			}
		}
		for key, number := range newest {
			if !seen[number] && !gap {
				t.Fatalf("the newest event %d of %s was missed and nobody said so", number, key)
			}
		}
		if !seen[f.next-1] {
			t.Fatal("the last event was missed")
		}
	})
}
