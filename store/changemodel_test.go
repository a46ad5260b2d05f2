package store_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pilothouse/store"
)

// This file says once more, without the code, what each step of the workflow needs
// and does (spec: checkpoint 2.3): on the plain JSON of a checkpoint, without its
// times.

type view struct {
	Phase, NextAction     string
	Workdir, WorktreeRoot string
	Plan                  *planView
	PendingQuestion       *struct{ QuestionID, Question string }
	AnsweredQuestions     []answerView
	ReviewRounds          []roundView
	ImplementationReview  *implementationView
	Execution             *executionView
	Migration             *struct{ FromWorktree string }
	// Keys of later writers (spec: checkpoint 2.7), here and below.
	Huge, PendingQuestions any
}

type planView struct {
	Path, SHA256 string
	Stream       any
}

type answerView struct{ QuestionID, Answer, Source string }

type roundView struct {
	RoundID, Role, Target, PlanSHA256, DispositionArtifact string
	Consolidated                                           bool
	Lanes                                                  []laneView
}

type laneView struct{ LaneID, Status, ResultFile string }

type implementationView struct {
	TerminationCondition, CurrentRoundID string
	CompletedRounds                      int
	ReviewerCount                        any
}

type executionView struct {
	Approval                               *struct{ Plan struct{ Path, SHA256 string } }
	DoneVCIDs                              []string
	ImplStatus                             map[string]string
	CurrentI, PausedReason, OriginWorktree string
	Usage                                  struct{ InToks, OutToks int }
	ReverifyAll                            bool
	Tasks                                  any
}

func viewOf(t *rapid.T, cp store.Checkpoint) (v view) {
	data, err := json.Marshal(cp)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// outcome is what becomes of a step.
type outcome string

const (
	done      outcome = "done"
	unchanged outcome = "unchanged"
	refusal   outcome = "refused"
	breaks    outcome = "breaks a rule of the format"
)

// step is a reducer with its arguments, and what it does to a view.
type step struct {
	change store.Change
	model  func(v *view) outcome
}

func (v *view) in(phases ...string) bool { return slices.Contains(phases, v.Phase) }

func (v *view) answered(id string) bool {
	return slices.ContainsFunc(v.AnsweredQuestions, func(a answerView) bool { return a.QuestionID == id })
}

func (v *view) round(id string) *roundView {
	i := slices.IndexFunc(v.ReviewRounds, func(r roundView) bool { return r.RoundID == id })
	if i < 0 {
		return nil
	}
	return &v.ReviewRounds[i]
}

func (v *view) lane(round, id string) *laneView {
	r := v.round(round)
	if r == nil {
		return nil
	}
	i := slices.IndexFunc(r.Lanes, func(l laneView) bool { return l.LaneID == id })
	if i < 0 {
		return nil
	}
	return &r.Lanes[i]
}

func (v *view) executing() bool { return v.Phase == "executing" && v.Execution != nil }

// withdraw takes approval and progress away, and with them what later writers have
// noted of that execution.
func (v *view) withdraw(origin string) {
	if v.Execution != nil {
		v.Execution = &executionView{
			DoneVCIDs: []string{}, ImplStatus: map[string]string{}, Usage: v.Execution.Usage, OriginWorktree: origin,
		}
	}
}

const safe = 1<<53 - 1

// Arguments come from small sets, so that steps often meet each other. Some are no ids.
var (
	ids        = rapid.SampledFrom([]string{"a", "a", "a", "b", "b", "c", "a..b"})
	roles      = rapid.SampledFrom([]string{"reviewer", "criticizer", "reviewer", "criticizer", "executor"})
	targets    = rapid.SampledFrom([]string{"plan", "implementation"})
	identities = rapid.SampledFrom([]store.PlanIdentity{plan, plan, otherPlan, {Path: "/n/PLAN_v1.md", Version: 1, SHA256: sha}})
	paths      = rapid.SampledFrom([]string{"x.md", "x.md", "y.md", "../z", "", "/d"})
	amounts    = rapid.SampledFrom([]int{0, 1, 2, 100, -101, safe})
	words      = rapid.SampledFrom([]string{"", " ", "one", "two"})
)

func validID(id string) bool   { return id != "" && !strings.Contains(id, "..") }
func contained(f string) bool  { return f != "" && f[0] != '/' && !strings.Contains(f, "..") }
func blank(words string) bool  { return strings.TrimSpace(words) == "" }
func validRole(r string) bool  { return r == "reviewer" || r == "criticizer" }
func inRange(amounts int) bool { return amounts >= 0 && amounts <= safe }

// reducers draws, for every reducer of the package by its name, a step.
var reducers = map[string]func(t *rapid.T) step{
	"QuestionAsked": func(t *rapid.T) step {
		id, text := ids.Draw(t, "question"), words.Draw(t, "text")
		return step{store.QuestionAsked(store.PendingQuestion{QuestionID: id, Question: text, Options: []string{"x"}}, pinned), func(v *view) outcome {
			switch {
			case !v.in("planning", "reviewing", "implementation-review"), v.answered(id),
				v.PendingQuestion != nil && v.PendingQuestion.QuestionID != id:
				return refusal
			case !validID(id):
				return breaks
			}
			v.PendingQuestion, v.NextAction = &struct{ QuestionID, Question string }{id, text}, "ask-question"
			return done
		}}
	},
	"QuestionAnswered": func(t *rapid.T) step {
		id, text := ids.Draw(t, "question"), words.Draw(t, "answer")
		source := rapid.SampledFrom([]string{"user", "auto-complete", "other", "nobody"}).Draw(t, "source")
		return step{store.QuestionAnswered(id, text, source, pinned), func(v *view) outcome {
			switch {
			case v.PendingQuestion == nil || v.PendingQuestion.QuestionID != id:
				return refusal
			case source == "nobody":
				return breaks
			}
			v.PendingQuestion, v.AnsweredQuestions = nil, append(v.AnsweredQuestions, answerView{id, text, source})
			return done
		}}
	},
	"QuestionDropped": func(t *rapid.T) step {
		id := ids.Draw(t, "question")
		return step{store.QuestionDropped(id), func(v *view) outcome {
			if v.PendingQuestion == nil || v.PendingQuestion.QuestionID != id {
				return unchanged
			}
			v.PendingQuestion = nil
			return done
		}}
	},
	"PlanWritten": func(t *rapid.T) step {
		p := identities.Draw(t, "plan")
		return step{store.PlanWritten(p), func(v *view) outcome {
			if !v.in("planning", "reviewing") {
				return refusal
			}
			v.writePlan(p)
			return done
		}}
	},
	"PlanMoved": func(t *rapid.T) step {
		p := identities.Draw(t, "plan")
		return step{store.PlanMoved(p), func(v *view) outcome {
			if v.Plan == nil || v.Plan.SHA256 != p.SHA256 {
				return refusal
			}
			v.Plan.Path = p.Path
			return done
		}}
	},
	"HandoffOffered": func(*rapid.T) step {
		return step{store.HandoffOffered(), func(v *view) outcome {
			if !v.in("planning", "reviewing", "executing") {
				return refusal
			}
			v.NextAction = "accept-execute"
			return done
		}}
	},
	"ExecutionApproved": func(t *rapid.T) step {
		given := approval
		given.Plan = identities.Draw(t, "plan")
		return step{store.ExecutionApproved(given), func(v *view) outcome {
			if !v.in("planning", "reviewing", "executing") || v.NextAction != "accept-execute" ||
				v.Plan != nil && v.Plan.SHA256 != given.Plan.SHA256 {
				return refusal
			}
			v.Phase, v.NextAction = "executing", "execute-items"
			if v.Plan == nil {
				v.Plan = &planView{}
			}
			v.Plan.Path, v.Plan.SHA256 = given.Plan.Path, given.Plan.SHA256 // the same bytes, so what is noted of them stays
			v.Execution = &executionView{
				Approval:  &struct{ Plan struct{ Path, SHA256 string } }{struct{ Path, SHA256 string }{given.Plan.Path, given.Plan.SHA256}},
				DoneVCIDs: []string{}, ImplStatus: map[string]string{},
			}
			return done
		}}
	},
	"ExecutionProgressed": func(t *rapid.T) step {
		p := store.Progress{Usage: store.TokenUsage{InToks: amounts.Draw(t, "in"), OutToks: amounts.Draw(t, "out")}}
		if rapid.Bool().Draw(t, "items") {
			p.DoneVCIDs = rapid.SliceOfN(rapid.SampledFrom([]string{"VC-1", "VC-2"}), 0, 2).Draw(t, "done")
			p.ImplStatus = map[string]string{"I-1": words.Draw(t, "state")}
		}
		if rapid.Bool().Draw(t, "texts") {
			current, paused := words.Draw(t, "current"), words.Draw(t, "paused")
			p.CurrentI, p.PausedReason = &current, &paused
		}
		return step{store.ExecutionProgressed(p), func(v *view) outcome {
			if !v.executing() {
				return refusal
			}
			e := *v.Execution
			if p.DoneVCIDs != nil {
				e.DoneVCIDs, e.ImplStatus = append([]string{}, p.DoneVCIDs...), maps.Clone(p.ImplStatus)
			}
			if p.CurrentI != nil {
				e.CurrentI, e.PausedReason = *p.CurrentI, *p.PausedReason
			}
			e.Usage.InToks += p.Usage.InToks
			e.Usage.OutToks += p.Usage.OutToks
			if !inRange(e.Usage.InToks) || !inRange(e.Usage.OutToks) {
				return breaks
			}
			v.Execution = &e
			return done
		}}
	},
	"HeadChanged": func(*rapid.T) step { return step{store.HeadChanged(), reverify(true)} },
	"Reverified":  func(*rapid.T) step { return step{store.Reverified(), reverify(false)} },
	"ExecutionStopped": func(t *rapid.T) step {
		reason := words.Draw(t, "reason")
		return step{store.ExecutionStopped(reason), func(v *view) outcome {
			if !v.executing() {
				return refusal
			}
			v.Execution.PausedReason = reason
			return done
		}}
	},
	"ExecutionCompleted": func(*rapid.T) step {
		return step{store.ExecutionCompleted(), func(v *view) outcome {
			if !v.executing() {
				return refusal
			}
			v.Phase, v.NextAction, v.Execution.PausedReason = "implementation-review", "ask-question", ""
			return done
		}}
	},
	"ReturnedToPlanning": func(*rapid.T) step {
		return step{store.ReturnedToPlanning(), func(v *view) outcome {
			if v.Phase != "executing" {
				return refusal
			}
			v.Phase, v.NextAction = "planning", "revise-plan"
			if v.Execution != nil {
				v.withdraw(v.Execution.OriginWorktree)
			}
			return done
		}}
	},
	"Migrated": func(t *rapid.T) step {
		to := rapid.SampledFrom([]string{"/n", "/m"}).Draw(t, "work tree")
		return step{store.Migrated(store.Root{Workdir: to + "/sub", Worktree: to, CommonDir: "/w/.git"}, pinned), func(v *view) outcome {
			from := v.WorktreeRoot
			v.Workdir, v.WorktreeRoot, v.Migration = to+"/sub", to, &struct{ FromWorktree string }{from}
			if v.Execution != nil {
				if v.Execution.OriginWorktree != "" {
					from = v.Execution.OriginWorktree
				}
				v.withdraw(from)
			}
			if r := v.ImplementationReview; r != nil {
				r.CompletedRounds, r.CurrentRoundID = 0, ""
			}
			if v.Phase == "implementation-review" {
				v.NextAction = "run-review"
			} else if v.Phase == "executing" && v.Plan != nil {
				v.NextAction = "accept-execute"
			}
			return done
		}}
	},
	"RoundStarted": func(t *rapid.T) step {
		spec := randomRound(t)
		return step{store.RoundStarted(spec, pinned), func(v *view) outcome { return v.startRound(spec) }}
	},
	"RoundStartedOrResumed": func(t *rapid.T) step {
		spec := randomRound(t)
		return step{store.RoundStartedOrResumed(spec, pinned), func(v *view) outcome { return v.startOrResume(spec) }}
	},
	"LaneCompleted": func(t *rapid.T) step {
		round, id, file := ids.Draw(t, "round"), ids.Draw(t, "lane"), paths.Draw(t, "file")
		return step{store.LaneCompleted(round, id, file, pinned), func(v *view) outcome {
			lane := v.lane(round, id)
			if lane == nil || !contained(file) || lane.Status == "complete" && lane.ResultFile != file {
				return refusal
			}
			lane.Status, lane.ResultFile = "complete", file
			return done
		}}
	},
	"LaneEndedWithoutResult": func(t *rapid.T) step {
		round, id := ids.Draw(t, "round"), ids.Draw(t, "lane")
		return step{store.LaneEndedWithoutResult(round, id, pinned), func(v *view) outcome {
			lane := v.lane(round, id)
			if lane == nil || lane.Status == "complete" {
				return refusal
			}
			lane.Status = "failed"
			return done
		}}
	},
	"ReviewConsolidated": func(t *rapid.T) step {
		id, file := ids.Draw(t, "round"), paths.Draw(t, "disposition")
		return step{store.ReviewConsolidated(id, file, pinned), func(v *view) outcome { return v.consolidate(id, file) }}
	},
	"ReviewConfigured": func(t *rapid.T) step {
		condition := words.Draw(t, "condition")
		return step{store.ReviewConfigured(condition), func(v *view) outcome {
			r := v.ImplementationReview
			if v.Phase != "implementation-review" || blank(condition) || r != nil && r.TerminationCondition != "" {
				return refusal
			}
			if r == nil {
				r = &implementationView{}
				v.ImplementationReview = r
			}
			r.TerminationCondition, v.NextAction = condition, "run-review"
			return done
		}}
	},
	"ReviewRoundFinished": func(*rapid.T) step {
		return step{store.ReviewRoundFinished(), func(v *view) outcome {
			r := v.ImplementationReview
			if v.Phase != "implementation-review" || r == nil || r.CurrentRoundID == "" || !v.round(r.CurrentRoundID).Consolidated {
				return refusal
			}
			r.CompletedRounds++
			r.CurrentRoundID = ""
			return done
		}}
	},
	"Completed": func(t *rapid.T) step {
		evidence := words.Draw(t, "evidence")
		return step{store.Completed(evidence), func(v *view) outcome {
			r := v.ImplementationReview
			if v.Phase != "implementation-review" || r == nil || r.TerminationCondition == "" || blank(evidence) {
				return refusal
			}
			v.Phase, v.NextAction = "completed", "none"
			return done
		}}
	},
}

func reverify(flag bool) func(v *view) outcome {
	return func(v *view) outcome {
		switch {
		case !v.executing():
			return refusal
		case v.Execution.ReverifyAll == flag:
			return unchanged
		}
		v.Execution.ReverifyAll = flag
		return done
	}
}

// writePlan records a plan. What later writers noted of a plan stays with its file.
func (v *view) writePlan(p store.PlanIdentity) {
	written := &planView{Path: p.Path, SHA256: p.SHA256}
	if v.Plan != nil && v.Plan.Path == p.Path {
		written.Stream = v.Plan.Stream
	}
	v.Plan = written
}

func randomRound(t *rapid.T) store.RoundSpec {
	spec := store.RoundSpec{RoundID: ids.Draw(t, "round"), Role: roles.Draw(t, "role"), Target: targets.Draw(t, "target")}
	for _, id := range rapid.SampledFrom([][]string{{"a", "b"}, {"b", "a"}, {"a"}, {}}).Draw(t, "lanes") {
		spec.Lanes = append(spec.Lanes, store.LaneSpec{LaneID: id})
	}
	if rapid.Bool().Draw(t, "names a plan") {
		named := identities.Draw(t, "plan")
		spec.Plan = &named
	}
	return spec
}

func (v *view) startRound(spec store.RoundSpec) outcome {
	review := v.ImplementationReview
	switch {
	case !v.in("planning", "reviewing", "implementation-review"), v.round(spec.RoundID) != nil, len(spec.Lanes) == 0,
		spec.Target == "plan" && v.Plan == nil,
		spec.Target == "implementation" && (v.Phase != "implementation-review" || review == nil || review.TerminationCondition == ""):
		return refusal
	case !validID(spec.RoundID) || !validRole(spec.Role):
		return breaks
	}
	if spec.Target == "implementation" {
		review.CurrentRoundID = spec.RoundID
	}
	round := roundView{RoundID: spec.RoundID, Role: spec.Role, Target: spec.Target}
	if spec.Plan != nil {
		round.PlanSHA256 = spec.Plan.SHA256
	} else if v.Plan != nil {
		round.PlanSHA256 = v.Plan.SHA256
	}
	for _, lane := range spec.Lanes {
		round.Lanes = append(round.Lanes, laneView{LaneID: lane.LaneID, Status: "pending"})
	}
	v.ReviewRounds = append(v.ReviewRounds, round)
	return done
}

func (v *view) startOrResume(spec store.RoundSpec) outcome {
	round := v.round(spec.RoundID)
	if round == nil {
		if spec.Target == "plan" && v.Plan == nil && spec.Plan != nil {
			if !v.in("planning", "reviewing") {
				return refusal
			}
			before := v.Plan
			v.writePlan(*spec.Plan)
			what := v.startRound(spec)
			if what != done {
				v.Plan = before
			}
			return what
		}
		return v.startRound(spec)
	}
	var have, want []string
	for _, lane := range round.Lanes {
		have = append(have, lane.LaneID)
	}
	for _, lane := range spec.Lanes {
		want = append(want, lane.LaneID)
	}
	slices.Sort(have)
	slices.Sort(want)
	if round.Role != spec.Role || round.Target != spec.Target || !slices.Equal(have, want) ||
		spec.Plan != nil && round.PlanSHA256 != "" && round.PlanSHA256 != spec.Plan.SHA256 {
		return refusal
	}
	return unchanged
}

func (v *view) consolidate(id, file string) outcome {
	round := v.round(id)
	if round == nil {
		return refusal
	}
	if round.Consolidated {
		return unchanged
	}
	complete := 0
	for _, lane := range round.Lanes {
		switch lane.Status {
		case "complete":
			complete++
		case "failed":
		default:
			return refusal
		}
	}
	if round.Role == "reviewer" && complete == 0 || file != "" && !contained(file) {
		return refusal
	}
	round.Consolidated, round.DispositionArtifact = true, file
	return done
}

// TestTheModelKnowsEveryReducer keeps the model complete.
func TestTheModelKnowsEveryReducer(t *testing.T) {
	t.Parallel()
	if known, there := slices.Sorted(maps.Keys(reducers)), exportedReducers(t); !slices.Equal(known, there) {
		t.Errorf("the model knows %v, the package has %v", known, there)
	}
}
