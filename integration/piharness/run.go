package piharness

import (
	"pilothouse/store"
)

// OnlyRun is the run of the repository, which has one.
func (p *Place) OnlyRun() (store.RunDir, store.Run, store.Checkpoint) {
	p.t.Helper()
	root, err := store.Find(p.t.Context(), p.Dir)
	if err != nil {
		p.t.Fatal(err)
	}
	runs, err := root.Runs()
	if err != nil || len(runs) != 1 {
		p.t.Fatalf("%d runs, %v; want one", len(runs), err)
	}
	cp, err := runs[0].Dir.LoadCheckpoint()
	if err != nil {
		p.t.Fatal(err)
	}
	return runs[0].Dir, runs[0].Run, cp
}
