package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/actors"
	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// StoryVariable makes the test binary tell a part of a story; its value is a storyPart.
const StoryVariable = "PILOTHOUSE_STORY"

// storyPart is what one process does of a story.
type storyPart struct {
	Headless bool
	Workdir  string
	Children string
	Pi       string
	List     bool   // tell of every boundary
	At       string // the boundary where it is killed

	// What sessions and their user remember.
	Session string // "" begins in another terminal
	Entries []SessionEntry
	Paused  bool
}

// TellStory is the process of a story. It returns its exit status if nothing kills it.
func TellStory() int {
	syscall.CloseOnExec(storyPipe)
	w := &teller{storyNotes: &storyNotes{out: os.NewFile(storyPipe, "notes")}}
	if err := json.Unmarshal([]byte(os.Getenv(StoryVariable)), &w.storyPart); err != nil {
		w.faultf("read the part: %v", err)
		return 1
	}
	w.places.at = w.At
	if w.List {
		w.places.tell = func(name string) { w.write(noteBoundary, name, nil) }
	}
	var err error
	w.system, err = New(Options{
		ChildrenDir: w.Children, MaxChildren: 6, Spares: -1, Now: w.places.now, receivers: []actor.ReceiverMiddleware{w.places.receive},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		w.faultf("open the system: %v", err)
		return 1
	}
	w.session = Session{ID: w.Session, Workdir: w.Workdir, Pi: w.Pi, Environ: os.Environ()}
	w.live()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.system.Close(ctx); err != nil {
		w.faultf("close the system: %v", err)
	}
	w.write(noteOver, "", nil)
	return 0
}

// teller plays the agent, its tools and its user before a system. All that it does next
// it sees on disk, as an agent that takes up a run is told by the brief.
type teller struct {
	storyPart
	*storyNotes
	places    boundaries
	system    *System
	session   Session
	root      *store.Root
	unsettled int // turns of the execution that need not be durable yet
}

// tellerGone ends a story that cannot go on.
type tellerGone struct{}

func (w *teller) faultf(format string, args ...any) {
	w.write(noteFault, fmt.Sprintf(format, args...), nil)
}

// fatalf ends the story with a fault.
func (w *teller) fatalf(format string, args ...any) {
	w.faultf(format, args...)
	panic(tellerGone{})
}

func (w *teller) must(what string, err error) {
	if err != nil {
		w.fatalf("%s: %v", what, err)
	}
}

func (w *teller) live() {
	defer func() {
		if reason := recover(); reason != nil && reason != any(tellerGone{}) {
			panic(reason)
		}
	}()
	if w.Headless {
		w.execute()
		return
	}
	w.open()
	for range 200 {
		dir, record, cp := w.look()
		if dir == nil {
			w.startRun()
			continue
		}
		if cp.Phase == store.PhaseCompleted {
			w.write(noteCompleted, dir.ID, nil)
			w.hook("session_shutdown", SessionShutdownEvent{Reason: "quit"})
			return
		}
		w.step(*dir, record, cp)
	}
	w.fatalf("the story does not come to its end")
}

// look is the newest run and its checkpoint, nil for none.
func (w *teller) look() (*store.RunDir, store.Run, store.Checkpoint) {
	if w.root == nil {
		root, err := store.Find(context.Background(), w.Workdir)
		if errors.Is(err, store.ErrNoState) {
			return nil, store.Run{}, store.Checkpoint{}
		}
		w.must("find the state", err)
		w.root = &root
	}
	runs, err := w.root.Runs()
	w.must("list the runs", err)
	if len(runs) == 0 {
		return nil, store.Run{}, store.Checkpoint{}
	}
	last := runs[len(runs)-1]
	cp, err := last.Dir.LoadCheckpoint()
	if errors.Is(err, store.ErrNoCheckpoint) { // it was begun, and no more
		return &last.Dir, last.Run, store.Checkpoint{Phase: store.PhasePlanning}
	}
	w.must("read the checkpoint", err)
	return &last.Dir, last.Run, cp
}

// open begins the session, or goes on with the one whose daemon has died. Where that
// does not know of its run, or in another terminal, the user takes the run up.
func (w *teller) open() {
	reason := "reload"
	if w.session.ID == "" {
		w.session.ID = fmt.Sprintf("terminal-%d", os.Getpid())
		reason = "startup"
	}
	if dir, _, cp := w.look(); dir == nil || cp.Phase != store.PhaseCompleted {
		w.write(noteBegun, "", nil)
	}
	entries := w.Entries
	if entries == nil {
		entries = []SessionEntry{}
	}
	w.hook("session_start", SessionStartEvent{Reason: reason, Entries: entries})
	dir, _, cp := w.look()
	if dir == nil || cp.Phase == store.PhaseCompleted {
		return
	}
	if !slices.ContainsFunc(w.Entries, func(e SessionEntry) bool { return e.CustomType == runStartEntry }) {
		reply := w.converse(KindCommand, "resume-plans", "")
		if !slices.ContainsFunc(reply.Actions, func(a Action) bool { return a.Kind == ActionUser }) {
			w.fatalf("/resume-plans ends with %+v", reply.Actions)
		}
		_, _, cp = w.look()
	}
	w.repeat(*dir, cp)
}

// repeat asks for what is decided once more, as an agent does that has not heard of it:
// its call had no result when the process was killed.
func (w *teller) repeat(dir store.RunDir, cp store.Checkpoint) {
	w.turn("", w.askOven, func() {
		if w.decided(dir, cp, execution.TerminationQuestionID) {
			w.askEnd()
		}
	}, func() {
		if cp.Phase == store.PhaseExecuting && cp.Execution.Approval != nil {
			w.handOff()
		}
	})
}

// hook tells the system of something and does what it replies.
func (w *teller) hook(name string, event any) Reply {
	data, err := json.Marshal(event)
	w.must("encode the event of "+name, err)
	w.places.cross("ask " + name)
	reply, err := w.system.Hook(context.Background(), w.session, name, data)
	w.places.cross("hear " + name)
	w.must("hook "+name, err)
	w.perform(reply.Actions)
	return reply
}

// perform keeps entries and reports that a compaction is not done. What an agent is told
// it sees for itself.
func (w *teller) perform(actions []Action) {
	for _, a := range actions {
		switch a.Kind {
		case ActionEntry:
			w.Entries = append(w.Entries, SessionEntry{CustomType: a.CustomType, Data: a.Data})
			w.write(noteEntry, a.CustomType, a.Data)
		case ActionCompact:
			w.hook("session_compact_failed", SessionCompactFailedEvent{Then: a.Then, ErrorMessage: "it is small"})
		case ActionNotify:
			if a.Level == LevelError {
				w.faultf("the session is told: %s", a.Text)
			}
		default:
		}
	}
}

// converse has a conversation whose user gives the answers of the story.
func (w *teller) converse(kind, name string, args any) Reply {
	data, err := json.Marshal(args)
	w.must("encode the arguments of "+name, err)
	w.places.cross("ask " + name)
	screen := Screen{Has: true, Mode: "tui", Editor: true, Rows: 40, Cols: 120, Idle: true}
	reply, err := w.system.Converse(context.Background(), w.session, screen, kind, name, data)
	var actions []Action
	for err == nil && reply.Dialog != nil {
		actions = append(actions, reply.Actions...)
		d := *reply.Dialog
		w.write(noteShown, d.Title, nil)
		answer := w.answer(d)
		w.places.cross("answer " + name)
		reply, err = w.system.Answer(context.Background(), w.session.ID, d.Conversation, answer)
	}
	w.places.cross("hear " + name)
	w.must(name, err)
	reply.Actions = append(actions, reply.Actions...)
	w.perform(reply.Actions)
	return reply
}

// answer is the user. Nothing may be asked that is decided on record.
func (w *teller) answer(d Dialog) Answer {
	yes := 0
	dir, _, cp := w.look()
	switch {
	case d.Kind == DialogPerform:
		return Answer{}
	case strings.HasPrefix(d.Title, "Resume "):
		if cp.WorktreeRoot == w.Workdir {
			w.faultf("the move is asked for although the run is here")
		}
		return Answer{Index: &yes}
	case strings.HasPrefix(d.Title, "Let this plan be executed"):
		if cp.Execution != nil && cp.Execution.Approval != nil {
			w.faultf("the approval is asked for although it is on record")
		}
		return Answer{Index: &yes}
	case d.Kind == DialogSelect:
		for _, question := range []struct{ id, title string }{{"oven", ovenQuestion}, {execution.TerminationQuestionID, endQuestion}} {
			if !strings.Contains(d.Title, question.title) {
				continue
			}
			if w.decided(*dir, cp, question.id) {
				w.faultf("question %s is asked although its answer is on record", question.id)
			}
			second := 1
			return Answer{Index: &second}
		}
	}
	w.faultf("nobody expects the dialog %+v", d)
	return Answer{Cancelled: true}
}

// decided tells whether the answer to a question is on record.
func (w *teller) decided(dir store.RunDir, cp store.Checkpoint, id string) bool {
	answer, err := ledgerAnswer(dir, id)
	w.must("read the decisions", err)
	return answer != nil || cp.Answered(id)
}

const (
	ovenQuestion = "Which oven is it about?"
	endQuestion  = "When does the review end?"
)

func (w *teller) askOven() { w.ask("oven", ovenQuestion, []string{"the old one", "the new one"}) }

func (w *teller) askEnd() {
	w.ask(execution.TerminationQuestionID, endQuestion, execution.TerminationOptions)
}

// ask asks one of the questions of the story.
func (w *teller) ask(id, question string, options []string) {
	choices := make([]map[string]any, len(options))
	for i, option := range options {
		choices[i] = map[string]any{"label": option}
	}
	reply := w.converse(KindTool, "ask_choice", map[string]any{"question": question, "questionId": id, "autoComplete": false, "options": choices})
	var details choiceDetails
	w.must("read the answer", json.Unmarshal(reply.Result.Details, &details))
	if details.Answer == nil || *details.Answer != options[1] {
		w.fatalf("the answer to %s is %s", id, reply.Result.Details)
	}
	w.write(noteAnswered, id, nil)
}

// turn is one of the agent: it works with tools, says something, and rests.
func (w *teller) turn(text string, tools ...func()) {
	w.hook("before_agent_start", BeforeAgentStartEvent{})
	w.hook("agent_start", AgentStartEvent{})
	for _, tool := range tools {
		tool()
		w.says("", "toolUse")
	}
	if text != "" {
		w.says(text, "stop")
	}
	w.hook("agent_settled", AgentSettledEvent{Idle: true, HasUI: true})
	w.settled()
}

// storyUsage is what each message of the agent costs.
var storyUsage = TurnUsage{Input: 7, Output: 2}

// says ends a message of the agent. What it costs is durable when it reports a check, and
// at the latest when the agent rests; it counts from when the session has the execution.
func (w *teller) says(text, stop string) {
	_, record, cp := w.look()
	if record.Status == store.StatusExecuting && cp.Phase == store.PhaseExecuting && cp.Execution.Approval != nil {
		w.write(noteSpending, "", nil)
		seat := w.system.executions.seat(w.session.ID)
		if seat.at != nil {
			w.unsettled++
		}
		seat.mu.Unlock()
	}
	w.hook("turn_end", TurnEndEvent{Text: text, StopReason: stop, HasUI: true, Usage: &storyUsage})
	if strings.Contains(text, "[DONE:") {
		w.settled()
	}
}

// settled notes that what was spent is durable.
func (w *teller) settled() {
	for ; w.unsettled > 0; w.unsettled-- {
		w.write(noteSpent, "", nil)
	}
}

// writes is the tool that writes a file. It tells whether it was let.
func (w *teller) writes(path, text string) bool {
	input := map[string]any{"path": path, "content": text}
	if w.hook("tool_call", ToolCallEvent{ToolName: "write", ToolCallID: "c", Input: input}).Block != nil {
		return false
	}
	w.must("make the directory", os.MkdirAll(filepath.Dir(path), 0o700))
	w.must("write", os.WriteFile(path, []byte(text), 0o600))
	w.hook("tool_result", ToolResultEvent{ToolName: "write", ToolCallID: "c", Input: input})
	return true
}

// working is a tool that has to be let write in the work tree.
func (w *teller) working(name, text string) func() {
	return func() {
		if !w.writes(filepath.Join(w.Workdir, name), text) {
			w.faultf("the approved plan may not write %s", name)
		}
	}
}

// unapproved tries to write in the work tree while nothing is approved.
func (w *teller) unapproved() {
	if w.writes(filepath.Join(w.Workdir, "early.txt"), "too early\n") {
		w.faultf("a file was written without an approval")
	}
}

// plans is the tool of that name; the refusal of a step is returned.
func (w *teller) plans(action PlansAction) (any, error) {
	w.places.cross("ask plans")
	value, err := w.system.Plans(context.Background(), w.session, action)
	w.places.cross("hear plans")
	var refused *store.StateError
	if !errors.As(err, &refused) {
		w.must("plans "+action.Action, err)
	}
	return value, err
}

// record records a step of the workflow.
func (w *teller) record(step CheckpointParams) {
	if _, err := w.plans(PlansAction{Action: "record-checkpoint", Checkpoint: &step}); err != nil {
		w.fatalf("record %s: %v", step.Transition, err)
	}
}

func (w *teller) startRun() {
	w.turn("", func() {
		input := map[string]any{"action": "start-run"}
		if _, err := w.plans(PlansAction{Action: "start-run", Topic: "A batch", Skill: "plan-normal", RequestText: "say how long a batch takes"}); err != nil {
			w.fatalf("start-run: %v", err)
		}
		w.hook("tool_result", ToolResultEvent{ToolName: "plans", ToolCallID: "c", Input: input})
	})
}

// refine is the tool of that name, for a new round or one that has been left.
func (w *teller) refine(plan string, role actors.Role, target string, reviewers int, resumed string) {
	req := RefineRequest{
		Session: w.session, PlanPath: plan, Role: role, Target: target, Reviewers: reviewers, ResumeRoundID: resumed, Model: ModelAnswer{Answered: true},
	}
	w.places.cross("ask refine")
	result, err := w.system.Refine(context.Background(), req, func(event any) {
		if ended, ok := event.(LaneEnded); ok && ended.Lane.Error == nil && !ended.Lane.Reused {
			w.write(noteReviewed, string(role)+" "+target+" "+ended.Lane.LaneID, nil)
		}
	})
	w.places.cross("hear refine")
	w.must("refine", err)
	if result.Complete() != len(result.Lanes) {
		w.fatalf("the round %+v is not complete", result)
	}
}
