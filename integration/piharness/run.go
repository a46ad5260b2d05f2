package piharness

import (
	"pilothouse/store"
)

// OnlyRun is the run of the repository, which has one.
func (s *Scene) OnlyRun() (store.RunDir, store.Run, store.Checkpoint) {
	s.t.Helper()
	root, err := store.Find(s.t.Context(), s.Dir)
	if err != nil {
		s.t.Fatal(err)
	}
	runs, err := root.Runs()
	if err != nil || len(runs) != 1 {
		s.t.Fatalf("%d runs, %v; want one", len(runs), err)
	}
	cp, err := runs[0].Dir.LoadCheckpoint()
	if err != nil {
		s.t.Fatal(err)
	}
	return runs[0].Dir, runs[0].Run, cp
}
