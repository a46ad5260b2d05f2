package api

import (
	"container/list"
	"slices"
	"sync"
)

// feed is a numbered log of events that readers follow at their own pace. An event
// with a key takes the place of the earlier one with that key, so what a slow reader
// misses is only what is out of date, and a feed is no longer than it has keys.
type feed struct {
	limit int // how many events are kept, 0 for all

	mu      sync.Mutex
	entries *list.List // of entry, numbers rising
	latest  map[string]*list.Element
	next    int64 // number of the next event
	dropped int64 // the last number that went because of the limit
	ended   bool
	changed chan struct{} // closed and replaced at every change
}

type entry struct {
	number int64
	key    string
	event  Event
}

func newFeed(limit int) *feed {
	return &feed{limit: limit, entries: list.New(), latest: map[string]*list.Element{}, next: 1, changed: make(chan struct{})}
}

// add appends an event and returns its number. Key "" supersedes nothing.
func (f *feed) add(key string, event Event) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.append(key, event)
}

// end appends the last event.
func (f *feed) end(event Event) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	return f.append("", event)
}

func (f *feed) append(key string, event Event) int64 {
	number := f.next
	f.next++
	if key != "" {
		if earlier := f.latest[key]; earlier != nil {
			f.entries.Remove(earlier)
		}
	}
	element := f.entries.PushBack(entry{number, key, event})
	if key != "" {
		f.latest[key] = element
	}
	for f.limit > 0 && f.entries.Len() > f.limit {
		oldest, _ := f.entries.Remove(f.entries.Front()).(entry)
		f.dropped = oldest.number
		delete(f.latest, oldest.key)
	}
	f.broadcast()
	return number
}

// settle replaces all events of a feed that has ended by one, in the place of the last.
func (f *feed) settle(event Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries.Init()
	clear(f.latest)
	f.entries.PushBack(entry{number: f.next - 1, event: event})
	f.broadcast()
}

func (f *feed) broadcast() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// view is what a reader sees of a feed.
type view struct {
	entries []entry // from the number asked for
	next    int64   // to ask for after these
	gap     bool    // events from the number asked for on went because of the limit
	ended   bool
	changed <-chan struct{} // closed when there is more to see
}

// since returns the events from a number on. The last event of a feed that has ended
// is always among them, whatever the number: a reader that knows the numbers of an
// earlier life of the daemon must not miss it.
func (f *feed) since(number int64) view {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := view{next: max(number, f.next), gap: number <= f.dropped, ended: f.ended, changed: f.changed}
	for element := f.entries.Back(); element != nil; element = element.Prev() {
		e, _ := element.Value.(entry)
		if e.number < number && (!f.ended || len(v.entries) > 0) {
			break
		}
		v.entries = append(v.entries, e)
	}
	slices.Reverse(v.entries)
	return v
}

// position is the number that the next event will have.
func (f *feed) position() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}
