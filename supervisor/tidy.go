package supervisor

import (
	"time"

	"pilothouse/store"
)

// tidy removes what killed processes have left beside the files of a run that has
// become ours. It is no condition for anything.
type tidy struct{}

func (tidy) store(f *files) error {
	if err := f.run.RemoveLeftovers(time.Now()); err != nil { // the clock that files are dated by
		f.logger.Warn("leftovers of killed processes stay", "run", f.run.ID, "error", err)
	}
	return nil
}

func (tidy) reduce(time.Time) store.Change { return nil }
