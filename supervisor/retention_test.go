package supervisor_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestPruningTellsFirstThenRemovesWhatIsFinishedAndOldAndSaysWhatItKeeps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := map[string]string{}
	for _, name := range []string{"finished", "open", "spoiled", "owned", "active"} {
		value, err := b.system.Plans(context.Background(), b.session, supervisor.PlansAction{Action: "start-run", Topic: name, Skill: "x", RequestText: "x"})
		started, ok := value.(supervisor.StartRunResult)
		if err != nil || !ok {
			t.Fatal(value, err)
		}
		ids[name] = started.Run.RunID
		if name == "open" {
			continue
		}
		if _, err := b.run(started.Run.RunID).SetStatus(store.StatusAbandoned, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.run(ids["spoiled"]).Dir, "checkpoint.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	lease, err := b.run(ids["owned"]).Acquire(t.Context(), "another session")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = lease.Release() }()
	for _, confirmed := range []bool{false, true} {
		// Stamps count seconds; this age takes all that has changed by now.
		result, err := b.system.Prune(context.Background(), supervisor.PruneRequest{Session: b.session, Age: -time.Hour, Confirmed: confirmed})
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Runs) != 1 || result.Runs[0].RunID != ids["finished"] || result.Removed != confirmed || result.Runs[0].Problem != "" {
			t.Errorf("confirmed %v: got %+v", confirmed, result)
		}
		reasons := map[string]string{ids["spoiled"]: "is corrupt", ids["owned"]: "actively owned", ids["active"]: "it is the active run"}
		for _, kept := range result.Kept {
			if reason := reasons[kept.RunID]; reason == "" || !strings.Contains(kept.Reason, reason) {
				t.Errorf("confirmed %v: run %s is kept because %s", confirmed, kept.RunID, kept.Reason)
			}
			delete(reasons, kept.RunID)
		}
		if len(reasons) > 0 {
			t.Errorf("confirmed %v: nothing is said of %v", confirmed, reasons)
		}
	}
	runs, more, err := b.system.RecentRuns(context.Background(), b.session, 3)
	if err != nil || len(runs) != 3 || more != 1 {
		t.Errorf("left are %+v and %d more (%v)", runs, more, err)
	}
}
