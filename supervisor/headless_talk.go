package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/actors"
	"pilothouse/agents"
	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// carryOut talks to the executor until nothing is left to do or it cannot go on.
func (h *headless) carryOut(ctx context.Context, first string) (ExecuteResult, error) {
	begin, err := h.executor()
	if err != nil {
		return ExecuteResult{}, err
	}
	h.watch(ExecutionStarted{RunID: h.run.ID, PlanPath: h.plan, Transcript: h.diary})
	events := make(chan any, 16)
	ended := make(chan error, 1)
	go func() {
		defer close(events)
		value, err := h.ask(ctx, func(event any) { events <- event }, begin)
		h.spent, _ = value.(lanes.SessionEnd)
		ended <- err
	}()
	// What the executor has reached is recorded also while it is being ended.
	lasting := context.WithoutCancel(ctx)
	var pid *actor.PID
	for event := range events {
		var next string
		switch event := event.(type) {
		case executorStarted:
			pid = event.pid
			continue
		case actors.ExecutorReady:
			next, err = first, nil
			if next == "" {
				next, err = h.review(ctx)
			}
		case actors.ExecutorTurn:
			h.heard(lasting, event)
			continue
		case actors.ExecutorRested:
			next, err = h.rested(ctx, event)
		default:
			h.watch(event)
			continue
		}
		if err != nil && ctx.Err() == nil {
			h.stop(fmt.Sprintf("pilothouse could not go on: %v", err))
		}
		if next == "" || h.stopped != "" || ctx.Err() != nil {
			h.actors.Root.Send(pid, actors.Finish{})
			continue
		}
		h.actors.Root.Send(pid, actors.Say{Text: h.prompt(lasting, next)})
	}
	if err := <-ended; err != nil {
		return ExecuteResult{}, err
	}
	return h.concluded(ctx)
}

// executor is the child that carries the plan out.
func (h *headless) executor() (func(caller *actor.PID) prepare, error) {
	host, err := h.host(h.session, h.root)
	if err != nil {
		return nil, err
	}
	key := runKey{h.root.Dir, h.run.ID}
	host.Places = h.places.of(key)
	prompt, err := agents.Prompt(string(actors.Executor))
	if err != nil {
		return nil, err
	}
	if dir, err := h.root.MakeTranscriptDir(h.run.ID); err != nil {
		h.logger.Warn("the executor has no transcript", "run", h.run.ID, "error", err)
	} else {
		h.diary = filepath.Join(dir, h.session.ID+"__executor.jsonl")
	}
	spec := actors.ExecutorSpec(h.run.ID, h.root.Worktree, h.session.Model, prompt, h.diary, h.req.Limits)
	run := h.run
	return func(caller *actor.PID) prepare {
		return func(context.Context) (destination, error) {
			return destination{
				run: key, session: h.session.ID, message: startExecutor{caller, h.session.ID, spec, host},
				spawn: newRun(h.services, &run, run.RoundDir()),
			}, nil
		}
	}, nil
}

// prompt is what the executor is told next, with what a session would put into its
// context.
func (h *headless) prompt(ctx context.Context, next string) string {
	parts := []string{next}
	for _, hook := range []string{"before_agent_start", "agent_start"} {
		reply, err := h.hook(ctx, hook, BeforeAgentStartEvent{Prompt: next})
		if err != nil { // it goes on with what it has been told before
			h.watch(ExecutionNotice{LevelWarning, err.Error()})
		}
		h.perform(reply)
		for _, message := range reply.Messages {
			if message.Content != next {
				parts = append(parts, message.Content)
			}
		}
	}
	return strings.Join(parts, "\n\n")
}

// heard takes a message of the executor into account.
func (h *headless) heard(ctx context.Context, turn actors.ExecutorTurn) {
	h.turn = turn
	verified := h.checks.scan(turn.Text)
	h.watch(ExecutionTurn{Text: turn.Text, Verified: verified})
	if h.fixing != nil { // the execution is complete
		for _, id := range verified {
			h.again[id] = excerpt(turn.Text)
		}
		return
	}
	reply, err := h.hook(ctx, "turn_end", TurnEndEvent{
		Text: turn.Text, StopReason: turn.StopReason, Usage: &TurnUsage{Input: int(turn.Usage.Input), Output: int(turn.Usage.Output)},
	})
	if err != nil {
		h.watch(ExecutionNotice{LevelError, err.Error()})
	}
	h.perform(reply)
}

// rested decides what an executor at rest is told next; "" ends it.
func (h *headless) rested(ctx context.Context, rested actors.ExecutorRested) (string, error) {
	if h.fixing != nil {
		return h.fixed(ctx, rested)
	}
	reply, err := h.hook(ctx, "agent_settled", AgentSettledEvent{Aborted: rested.Aborted, Idle: true, HasUI: true})
	if err != nil {
		return "", err
	}
	next := h.perform(reply)
	if next != "" {
		return next, nil
	}
	cp, err := h.run.LoadCheckpoint()
	switch {
	case err != nil:
		return "", err
	case cp.Phase == store.PhaseImplementationReview:
		return h.review(ctx)
	case cp.Execution != nil && cp.Execution.PausedReason != "":
		h.stop(cp.Execution.PausedReason + failureOf(rested))
	default:
		h.stop("the executor stopped with " + rested.StopReason + failureOf(rested))
	}
	return "", nil
}

// failureOf is the provider's error behind a rest.
func failureOf(rested actors.ExecutorRested) string {
	if rested.Error == "" {
		return ""
	}
	return ": " + rested.Error
}

func (h *headless) stop(reason string) {
	if h.stopped == "" {
		h.stopped = reason
	}
}

// hook tells the hooks of a session what happens.
func (h *headless) hook(ctx context.Context, name string, event any) (Reply, error) {
	data, err := json.Marshal(event)
	if err != nil {
		return Reply{}, fmt.Errorf("encode the event %s: %w", name, err)
	}
	return h.Hook(ctx, h.session, name, data)
}

// perform does what a session has to do, and returns the message for the agent that
// comes of it. Entries and status lines are for sessions that last.
func (h *headless) perform(reply Reply) (next string) {
	for _, action := range reply.Actions {
		switch action.Kind {
		case ActionNotify:
			h.watch(ExecutionNotice{action.Level, action.Text})
		case ActionUser:
			next = action.Text
		case ActionSend:
			switch {
			case action.TriggerTurn:
				next = action.Message.Content
			case action.Message.Display:
				h.watch(ExecutionNotice{LevelInfo, action.Message.Content})
			}
		default:
		}
	}
	return next
}

// markerScanner finds the checks that a message reports as done.
type markerScanner struct{ execution.Scanner }

func (m *markerScanner) scan(text string) (ids []string) {
	for _, marker := range m.Scan(text) {
		if marker.Kind == execution.MarkerDone {
			ids = append(ids, marker.ID)
		}
	}
	return ids
}

// maxEvidence bounds, in bytes, what a report keeps of the message that reported a check.
const maxEvidence = 2 << 10

// excerpt is the end of a message, where its evidence and its marker stand.
func excerpt(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= maxEvidence {
		return text
	}
	cut := text[len(text)-maxEvidence:]
	if i := strings.IndexByte(cut, '\n'); i >= 0 {
		cut = cut[i+1:]
	}
	return "… " + strings.ToValidUTF8(cut, "")
}
