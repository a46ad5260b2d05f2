package supervisor

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/supervisor/compaction"
)

// over takes the report of Pi on a compaction. What a report is about is the flight of
// its session; after a restart of the daemon it is unknown, and nothing but the going on
// is left to do.
func (c *compactor) over(ctx actor.Context, s *sessionCompactions, m compactionOver) Reply {
	f := s.flight
	if f != nil && !f.answered {
		f.reported = true
	} else {
		s.flight = nil
	}
	if !m.done {
		told := s.cancelled
		s.cancelled = false
		if told || c.prePlan.pending() { // that one has a report of its own
			return Reply{}
		}
		return failedCompaction(m)
	}
	if f != nil {
		c.dropStale(ctx, s, f)
	}

	var reply Reply
	if m.event.WillRetry { // Pi goes on by itself, and has more to say
		return reply
	}
	if f != nil && f.result.Action == compaction.Compacted {
		reply.Actions = append(reply.Actions, notice(LevelInfo, f.result.Compaction.Details.Stats.Notice()+"."))
		if f.result.FollowUp != "" {
			reply.Actions = append(reply.Actions, Action{Kind: ActionUser, Text: f.result.FollowUp})
			return reply
		}
	}
	automatic := m.event.Reason == compaction.Threshold || m.event.Reason == compaction.Overflow
	if automatic && m.event.FromExtension && m.config.ContinueAfterThresholdCompact && compaction.NeedsContinue(m.event.PiVersion) {
		resume := "pi-plans-plan-resume"
		if m.phase == compaction.Execution {
			resume = "pi-plans-exec-resume"
		}
		reply.Actions = append(reply.Actions, hiddenResume(resume, "Continue with the work where it was before the compaction."))
	}
	return reply
}

// dropStale answers those who wait and were asked with the messages from before a
// compaction that is done.
func (c *compactor) dropStale(ctx actor.Context, s *sessionCompactions, done *compactionFlight) {
	queue := s.queue
	s.queue = nil
	for _, waiting := range queue {
		if waiting.earlier > done.earlier {
			s.queue = append(s.queue, waiting)
		}
	}
	for _, waiting := range queue {
		if waiting.earlier <= done.earlier {
			c.answer(ctx, waiting.call, Reply{Compaction: &CompactionReply{Action: string(compaction.Cancel), Reason: "already compacted"}}, nil)
		}
	}
}

// failedCompaction tells the user of a compaction that was not done (spec: compaction
// 6.5). Nothing is tried again from here: Pi does that when it is due.
func failedCompaction(m compactionOver) Reply {
	level, text := LevelWarning, "The compaction failed: %s. It is tried again when it is next due."
	switch compaction.ClassifyFailure(m.failure, m.aborted) {
	case compaction.NothingToDo:
		level, text = LevelInfo, "Nothing was compacted: %s."
	case compaction.Aborted:
		level, text = LevelInfo, "The compaction was ended: %s."
	}
	return Reply{Actions: []Action{notice(level, fmt.Sprintf(text, reasonOf(m.failure)))}}
}

// reasonOf is a failure that others have worded, inside a sentence of ours.
func reasonOf(failure string) string {
	failure = oneLine(failure)
	for len(failure) > 0 && failure[len(failure)-1] == '.' {
		failure = failure[:len(failure)-1]
	}
	if failure == "" {
		return "no reason was given"
	}
	return failure
}

// hiddenResume is a hidden message that lets the agent go on.
func hiddenResume(customType, text string) Action {
	send := sendMessage(Message{CustomType: customType, Content: text})
	send.TriggerTurn = true
	return send
}
