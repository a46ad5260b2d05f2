package supervisor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// revision is the way of a plan back from its execution to planning.
type revision struct {
	s         *System
	session   Session
	m         meantRun
	cp        store.Checkpoint
	path      string // of the plan to revise
	next      string // of the version to write
	focus     string
	executing bool
}

// updatePlan is /update-plan [path] [focus]: the plan is to be revised. An execution of it
// ends, after a question, and its approval with it; what was verified goes into the brief
// of the agent, which writes the next version.
func updatePlan(ctx context.Context, s *System, session Session, ui UI, args json.RawMessage) (Reply, error) {
	text, err := commandArgs(args)
	if err != nil {
		return Reply{}, err
	}
	v := &revision{s: s, session: session}
	path := ""
	if path, v.focus = planAndFocus(text); path != "" {
		if path, err = session.within(path); err != nil {
			return Reply{}, inputErrorf("plan %s: %v", path, err)
		}
	}
	if err := v.find(ctx, path); err != nil {
		return Reply{}, err
	}
	if v.executing {
		if !ui.Has() {
			return notify(LevelError, "/update-plan asks before it ends an execution, and nobody sits before this session."), nil
		}
		yes, err := ui.Confirm(ctx, "Revise the plan?", fmt.Sprintf("The execution of %s ends and its approval with it. The next version, %s, has to be approved anew.", v.path, filepath.Base(v.next)))
		if err != nil {
			return Reply{}, err
		}
		if !yes {
			return notify(LevelInfo, "Nothing was changed; the execution goes on."), nil
		}
	}
	reply, err := v.turnBack(context.WithoutCancel(ctx))
	if err != nil {
		return Reply{}, err
	}
	if !ui.Idle() {
		reply.Actions[len(reply.Actions)-1].DeliverAs = deliverFollowUp
	}
	return reply, nil
}

// planAndFocus splits what follows the command: a first word that looks like a path is
// one, the rest is what the revision is about.
func planAndFocus(text string) (path, focus string) {
	first, rest, _ := strings.Cut(text, " ")
	if strings.HasSuffix(first, ".md") || strings.HasSuffix(first, ".markdown") || strings.Contains(first, "/") || strings.HasPrefix(first, "@") {
		return first, strings.TrimSpace(rest)
	}
	return "", text
}

// find finds the run and its plan, and refuses what is past revising.
func (v *revision) find(ctx context.Context, path string) (err error) {
	if v.m, err = v.s.meant(ctx, v.session); err != nil {
		return err
	}
	if v.m.run == nil {
		return inputErrorf("there is no run whose plan could be revised")
	}
	if v.m.run.Status.Terminal() {
		return inputErrorf("run %s is %s; start a new run for another plan", v.m.run.RunID, v.m.run.Status)
	}
	if v.cp, err = loadOrCreateCheckpoint(v.m.dir, v.s.services); err != nil {
		return err
	}
	v.executing = v.cp.Phase == store.PhaseExecuting
	v.path = path
	if path == "" {
		if v.path, _, err = store.LatestPlan(v.m.run.ArtifactDir); errors.Is(err, store.ErrNoPlan) {
			return inputErrorf("run %s has no PLAN_v<N>.md in %s; there is nothing to revise", v.m.run.RunID, v.m.run.ArtifactDir)
		} else if err != nil {
			return err
		}
	}
	v.next, _, err = store.NextPlan(v.m.run.ArtifactDir)
	return err
}

// turnBack takes the run back to planning and hands the agent its brief, as the last
// action.
func (v *revision) turnBack(ctx context.Context) (Reply, error) {
	actions, err := v.s.stopAutoComplete(ctx, v.session, &v.m.dir, "the plan is revised")
	if err != nil {
		return Reply{}, err
	}
	r, cp, release, err := v.s.executionOf(ctx, v.session)
	if err != nil {
		return Reply{}, err
	}
	if r != nil {
		defer release()
		written, reply := v.s.settle(ctx, v.session, r, cp, false)
		if written == nil {
			return reply, nil
		}
		cp, v.cp = *written, *written
	}
	brief, err := v.brief(r)
	if err != nil {
		return Reply{}, err
	}
	if _, err := v.s.changeRun(ctx, v.session, "revise-plan", v.m.run.RunID, v.commit); err != nil {
		return Reply{}, err
	}
	if r != nil {
		actions = append(actions, r.snapshot(cp), entry(executionClearedEntry, map[string]string{"reason": "update-plan"}))
	}
	status := Action{Kind: ActionStatus, Key: statusKey, Text: execution.IdleLine(v.m.run.RunID, string(store.StatusPlanning), true)}
	return Reply{Actions: append(actions, status, Action{Kind: ActionUser, Text: brief})}, nil
}

func (v *revision) commit(context.Context, store.RunDir) (*planChange, error) {
	step := func(*store.Checkpoint) error { return store.ErrNoChange }
	if v.executing {
		step = store.ReturnedToPlanning()
	} else if v.cp.Phase != store.PhasePlanning && v.cp.Phase != store.PhaseReviewing {
		return nil, inputErrorf("the plan of run %s has been carried out; start a new run for another plan", v.m.run.RunID)
	}
	const revise = "Revise the plan"
	decision := store.Decision{
		Question: "What becomes of " + filepath.Base(v.path) + "?", Options: []string{revise},
		Answer: cmp.Or(v.focus, revise), AnswerSource: store.AnswerUser, Artifact: v.next,
	}
	return &planChange{
		files: func(f *files) (any, error) {
			if err := f.rehearse(step); err != nil {
				return nil, err
			}
			if _, err := f.run.AppendDecision(decision, f.now()); err != nil {
				return nil, err
			}
			if err := f.run.UpdateNotes(f.now(), func(notes *store.WorkflowNotes) { notes.Execution = nil }); err != nil {
				return nil, err
			}
			return f.run.SetStatus(store.StatusPlanning, f.now())
		},
		step: func(time.Time) store.Change { return step },
	}, nil
}

// brief tells the agent what to revise, and what of it is verified.
func (v *revision) brief(r *running) (string, error) {
	var state *execution.State
	if r != nil {
		state = r.state(v.cp)
	} else {
		file, err := readPlan(RefineRequest{Session: v.session, PlanPath: v.path})
		if err != nil {
			return "", err
		}
		var done []string
		if v.cp.Execution != nil {
			done = v.cp.Execution.DoneVCIDs
		}
		state = execution.NewState(execution.Parse(file.text), done, nil, "")
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Revise the plan %s. Write the whole next version to %s; leave the old one as it is.\n", v.path, v.next)
	if v.focus != "" {
		fmt.Fprintf(&text, "\nWhat the revision is about: %s\n", v.focus)
	}
	var open []string
	for _, check := range state.Remaining() {
		open = append(open, check.ID)
	}
	fmt.Fprintf(&text, "\nVerified so far: %s.\nNot verified: %s.\n", cmp.Or(strings.Join(state.Done(), ", "), "none"), cmp.Or(strings.Join(open, ", "), "none"))
	text.WriteString("\nThe run is in planning again: change nothing outside planning artifacts. Keep the ids of what stays, say in the revision ledger what has changed and why, " +
		"tick nothing as done that the changes touch, and have the new version approved with execute_plan before it is carried out.")
	return text.String(), nil
}
