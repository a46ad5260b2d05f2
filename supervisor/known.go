package supervisor

import (
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// known remembers what was read from files for as long as they are the same: a hook
// comes before every tool, and what it has to know changes seldom.
type known[T any] struct {
	mu     sync.Mutex
	values map[string]knownValue[T]
}

type knownValue[T any] struct {
	value T
	marks []mark
}

// maxKnown bounds what a long life gathers; beyond it all is read anew.
const maxKnown = 1024

// get is what read returns, which it calls only when a file is not as it was. What is
// returned is shared: nobody may change what it refers to.
func (k *known[T]) get(key string, paths []string, read func() (T, error)) (T, error) {
	marks := make([]mark, len(paths)) // from before the reading: a change in between is seen the next time
	for i, path := range paths {
		marks[i] = markOf(path)
	}
	k.mu.Lock()
	found, ok := k.values[key]
	k.mu.Unlock()
	if ok && slices.EqualFunc(found.marks, marks, mark.same) {
		return found.value, nil
	}
	value, err := read()
	if err == nil && !slices.ContainsFunc(marks, mark.fresh) {
		k.keep(key, value, marks)
	}
	return value, err
}

// fresh tells that a file has just changed: if it did so again, its time might be the
// same.
func (m mark) fresh() bool {
	return m.info != nil && time.Since(m.info.ModTime()) < time.Second
}

func (k *known[T]) keep(key string, value T, marks []mark) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.values == nil || len(k.values) >= maxKnown {
		k.values = map[string]knownValue[T]{}
	}
	k.values[key] = knownValue[T]{value, marks}
}

// mark is what was at a path, nil for nothing.
type mark struct {
	path string
	info fs.FileInfo
}

func markOf(path string) mark {
	info, err := os.Lstat(path)
	if err != nil {
		info = nil
	}
	return mark{path, info}
}

// same tells whether nothing has taken the place of what was there. A directory changes
// with each file in it and stays the same; what a file or link says counts.
func (m mark) same(now mark) bool {
	if m.path != now.path || m.info == nil || now.info == nil {
		return m.path == now.path && m.info == nil && now.info == nil
	}
	return os.SameFile(m.info, now.info) && m.info.Mode().Type() == now.info.Mode().Type() &&
		(m.info.IsDir() || m.info.Size() == now.info.Size() && m.info.ModTime().Equal(now.info.ModTime()))
}
