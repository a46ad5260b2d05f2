package supervisor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// talkingPi is a program in the place of pi. In RPC mode it answers each prompt by how
// many checks are verified; as a lane it is a reviewer that finds nothing. $HOLD names a
// file: with one check verified it waits while that is there.
const talkingPi = `#!/bin/sh
say() { printf '%s\n' "$1"; }
turn() {
  say '{"type":"agent_start"}'
  say '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"'"$1"'"}],"model":"stub","stopReason":"stop","usage":{"input":10,"output":5,"cost":{"total":0.25}}}}'
  say '{"type":"turn_end"}'
  say '{"type":"agent_end","messages":[],"willRetry":false}'
  say '{"type":"agent_settled","aborted":false}'
}
case "$*" in
*"--mode json"*)
  cat >/dev/null
  turn '## Findings\n\nNo findings.\n\n## Checked\n\n- all'
  exit 0 ;;
esac
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":"\([0-9]*\)".*/\1/p')
  say '{"id":"'"$id"'","type":"response","command":"prompt","success":true}'
  case "$line" in
  *"Verified: 0 of 2"*) turn 'it builds [DONE:VC-001]' ;;
  *"Verified: 1 of 2"*)
    if [ -n "$HOLD" ] && [ -e "$HOLD" ]; then
      say '{"type":"agent_start"}'
      : >"$HOLD.reached"
      while [ -e "$HOLD" ]; do sleep 0.02; done
    fi
    turn 'it runs [DONE:VC-002]' ;;
  *) turn 'what is there to do?' ;;
  esac
done
`

// executable is a bundle with a plan and a pi that talks. With hold, its execution stops
// in the middle until the file is removed.
func executable(t *testing.T, hold bool) (b *bundle, req supervisor.ExecuteRequest, held string) {
	t.Helper()
	b = setup(t)
	b.commit()
	program := filepath.Join(t.TempDir(), "pi")
	writeText(t, program, talkingPi)
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	b.session.Pi = program
	held = filepath.Join(t.TempDir(), "hold")
	if hold {
		writeText(t, held, "")
		b.session.Environ = append(b.session.Environ, "HOLD="+held)
	}
	writeText(t, filepath.Join(b.session.Workdir, "PLAN.md"), twoChecks)
	sum, err := store.SHA256File(filepath.Join(b.session.Workdir, "PLAN.md"))
	if err != nil {
		t.Fatal(err)
	}
	return b, supervisor.ExecuteRequest{Session: b.session, PlanPath: "PLAN.md", Approve: sum}, held
}

func (b *bundle) execute(req supervisor.ExecuteRequest) supervisor.ExecuteResult {
	b.t.Helper()
	result, err := b.system.Execute(context.Background(), req, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// during runs an execution up to the middle and lets do something happen there.
func (b *bundle) during(req supervisor.ExecuteRequest, held string, do func(cancel context.CancelFunc)) (supervisor.ExecuteResult, error) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type outcome struct {
		result supervisor.ExecuteResult
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := b.system.Execute(ctx, req, nil)
		done <- outcome{result, err}
	}()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		if _, err := os.Stat(held + ".reached"); err == nil {
			break
		}
		select {
		case o := <-done:
			b.t.Fatalf("ended before it was held: %+v, %v", o.result, o.err)
		case <-poll.C:
		}
	}
	do(cancel)
	o := <-done
	return o.result, o.err
}

func TestAnExecutionWithoutASessionReachesItsEnd(t *testing.T) {
	t.Parallel()
	b, req, _ := executable(t, false)
	req.Review = supervisor.ReviewRequest{Condition: "1 round", Model: supervisor.ModelAnswer{Answered: true}}
	var mu sync.Mutex
	var verified []string
	seen := map[string]bool{}
	result, err := b.system.Execute(context.Background(), req, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch event := event.(type) {
		case supervisor.ExecutionTurn:
			verified = append(verified, event.Verified...)
		case supervisor.ExecutionStarted, supervisor.RoundStarted, supervisor.LaneEnded:
			seen[strings.TrimPrefix(typeName(event), "supervisor.")] = true
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if result.Outcome != supervisor.ExecutionCompleted || result.Phase != store.PhaseCompleted || result.Cost != 0.75 || result.Turns != 2 {
		t.Errorf("the result is %+v", result)
	}
	if diff := cmp.Diff([]string{"VC-001", "VC-002"}, verified); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]bool{"ExecutionStarted": true, "RoundStarted": true, "LaneEnded": true}, seen); diff != "" {
		t.Error(diff)
	}
	if owner := b.owner(result.RunID); owner != "none" {
		t.Errorf("owner is %q after the end", owner)
	}
	again, err := b.system.Execute(context.Background(), supervisor.ExecuteRequest{Session: req.Session, RunID: result.RunID}, nil)
	refusedBy(t, err, "it is over")
	if again.RunID != "" {
		t.Errorf("a completed run was executed: %+v", again)
	}
}

func typeName(event any) string {
	switch event.(type) {
	case supervisor.ExecutionStarted:
		return "ExecutionStarted"
	case supervisor.RoundStarted:
		return "RoundStarted"
	}
	return "LaneEnded"
}

func TestAPersonIsAskedWithTheWholeQuestion(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]bool{"yes": true, "no": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, req, _ := executable(t, false)
			digest := req.Approve
			req.Approve = ""
			req.Ask = func(_ context.Context, question string) (bool, error) {
				holds(t, question, digest, "PLAN.md", "VC-001", "VC-002", b.session.Workdir)
				return answer, nil
			}
			result, err := b.system.Execute(context.Background(), req, nil)
			if answer {
				if err != nil || result.Outcome != supervisor.ExecutionReviewPending {
					t.Errorf("got %+v, %v", result, err)
				}
				return
			}
			var declined *supervisor.ApprovalError
			if !errors.As(err, &declined) || declined.SHA256 != digest {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestACancelledExecutionIsStoppedAndGoesOnLater(t *testing.T) {
	t.Parallel()
	b, req, held := executable(t, true)
	result, err := b.during(req, held, func(cancel context.CancelFunc) { cancel() })
	if err != nil || result.Outcome != supervisor.ExecutionInterrupted || result.Status != store.StatusStopped {
		t.Fatalf("got %+v, %v", result, err)
	}
	dir := b.run(result.RunID)
	if run, err := dir.Load(); err != nil || run.Status != store.StatusStopped {
		t.Errorf("status %s, %v", run.Status, err)
	}
	removeFile(t, held)
	req.Approve = "" // it stands
	result = b.execute(req)
	if result.Outcome != supervisor.ExecutionReviewPending || result.Turns != 1 {
		t.Errorf("went on with %+v", result)
	}
	head := *b.checkpoint(dir).Execution.Approval.HeadAtApproval
	for i, evidence := range []string{"it builds", "it runs"} { // of the earlier call, and of this one
		if check := result.Checks[i]; !check.Passed || !strings.HasPrefix(check.Evidence, evidence) || check.Commit != head {
			t.Errorf("the report says %+v", check)
		}
	}
}

func TestAnExecutionWhoseRunIsTakenOverEndsAndWritesNothingMore(t *testing.T) {
	t.Parallel()
	b, req, held := executable(t, true)
	var dir store.RunDir
	var before store.Checkpoint
	_, err := b.during(req, held, func(context.CancelFunc) {
		dir = b.run(lastRun(t, b))
		before = b.checkpoint(dir)
		// What another program leaves that has taken the run; it is noticed at the next look.
		writeText(t, filepath.Join(dir.Dir, "owner.json"), `{"schema":1,"host":"elsewhere","pid":1,"pidStart":null,"sessionId":null,`+
			`"processToken":"0123456789abcdef0123456789abcdef","generation":7,"acquiredAt":"2026-11-30T00:00:00Z"}`)
	})
	var lost *store.LostOwnerError
	if !errors.As(err, &lost) {
		t.Errorf("got %v, want a *LostOwnerError", err)
	}
	if after := b.checkpoint(dir); after.Revision != before.Revision {
		t.Errorf("revision %d became %d", before.Revision, after.Revision)
	}
}

func TestOnlyOneExecutionOfARunAtATime(t *testing.T) {
	t.Parallel()
	b, req, held := executable(t, true)
	_, err := b.during(req, held, func(context.CancelFunc) {
		_, err := b.system.Execute(context.Background(), req, nil)
		var owned *store.OwnedError
		if !errors.As(err, &owned) {
			t.Errorf("a second execution: %v", err)
		}
		if _, err := b.system.StopRun(context.Background(), b.session, lastRun(t, b), "stop"); !errors.As(err, &owned) {
			t.Errorf("a stop from elsewhere: %v", err)
		}
		removeFile(t, held)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWithoutPiNothingIsApproved(t *testing.T) {
	t.Parallel()
	b, req, _ := executable(t, false)
	req.Pi = filepath.Join(b.session.Workdir, "none")
	var command *lanes.CommandError
	if _, err := b.system.Execute(context.Background(), req, nil); !errors.As(err, &command) {
		t.Errorf("got %v", err)
	}
	if runs, err := b.system.Runs(context.Background(), b.session); err == nil && len(runs) > 0 {
		t.Errorf("runs are %+v", runs)
	}
}
