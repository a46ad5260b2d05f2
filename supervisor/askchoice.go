package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// sourceCancelled is that of a question without an answer.
const sourceCancelled = "cancelled"

// choiceDetails is what a session keeps of a question (spec: execution 5.6).
type choiceDetails struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
	Answer   *string  `json:"answer"`
	Source   string   `json:"source"` // user, other, auto-complete or cancelled
}

// choice is one question on its way to an answer.
type choice struct {
	choiceParams
	s       *System
	session Session
	ui      UI
	run     *store.RunDir // nil when the session works on none: then nothing is recorded
	own     bool          // the run is the session's, not only that of the workspace
	// asked tells that the question is in the checkpoint.
	asked bool
	reply Reply
}

// askChoice is the tool ask_choice. A question with an id is durable before it is
// shown, its answer before the model has it. A question that has an answer on record is
// not asked again: a crash may have come before the model heard of it.
func askChoice(ctx context.Context, s *System, session Session, ui UI, args json.RawMessage) (Reply, error) {
	p, err := parseChoice(args)
	if err != nil {
		return Reply{}, err
	}
	if p.Workdir != "" {
		if session.Workdir, err = session.within(p.Workdir); err != nil {
			return Reply{}, inputErrorf("workdir %s: %v", p.Workdir, err)
		}
	}
	done, free := s.choices.begin(session.ID)
	if !free {
		return Reply{}, inputErrorf("another question of this session is open; ask one at a time")
	}
	defer done()
	c := &choice{choiceParams: p, s: s, session: session, ui: ui}
	m, err := s.meant(ctx, session)
	if err != nil {
		return Reply{}, err
	}
	if m.run != nil {
		c.run, c.own = &m.dir, m.bound
	}
	if answer, err := c.onRecord(); err != nil || answer != nil {
		return c.answered(answer, true), err
	}
	return c.decide(ctx)
}

// runAtWork is the run that a session works on, nil for none.
func (s *System) runAtWork(ctx context.Context, session Session) (*store.RunDir, error) {
	m, err := s.meant(ctx, session)
	if err != nil || m.run == nil {
		return nil, err
	}
	return &m.dir, nil
}

// onRecord is the answer that the question has already, nil for none. One to another
// question of the same id is refused, not passed on.
func (c *choice) onRecord() (*store.AnsweredQuestion, error) {
	if c.run == nil || c.QuestionID == "" {
		return nil, nil
	}
	decisions, err := c.run.Decisions()
	if err != nil {
		return nil, err
	}
	for _, d := range decisions {
		if d.QuestionID == c.QuestionID && d.Question != c.Question {
			return nil, inputErrorf("the question id %s has the answer to another question, %q; take an id of its own", c.QuestionID, d.Question)
		}
	}
	if cp, err := c.run.LoadCheckpoint(); err == nil {
		for _, answered := range cp.AnsweredQuestions {
			if answered.QuestionID == c.QuestionID {
				return &answered, nil
			}
		}
	} // what is wrong with a checkpoint is for ask to find
	return ledgerAnswer(*c.run, c.QuestionID)
}

// decide takes the recommended option or asks.
func (c *choice) decide(ctx context.Context) (Reply, error) {
	automatic := c.automatic()
	switch {
	case automatic && c.s.autoCompletes(c.session, c.run):
		return c.take(ctx)
	case !c.ui.Has() && !automatic:
		if err := c.switchOff(ctx, "no user interface"); err != nil {
			return Reply{}, err
		}
		c.reply.Result = &ToolResult{IsError: true, Text: "No UI available: only the user may answer this question, and nobody sits before this session. " +
			"Do not go on as if it were answered; say what has to be decided and stop."}
		return c.reply, nil
	case !c.ui.Has():
		if err := c.switchOn(ctx); err != nil {
			return Reply{}, err
		}
		return c.take(ctx)
	}
	return c.ask(ctx)
}

// take answers with the recommended option.
func (c *choice) take(ctx context.Context) (Reply, error) {
	if err := c.record(ctx); err != nil {
		return Reply{}, err
	}
	return c.give(ctx, c.Options[c.recommended()].Label, store.AnswerAutoComplete)
}

// ask shows the question.
func (c *choice) ask(ctx context.Context) (Reply, error) {
	if err := c.record(ctx); err != nil {
		return Reply{}, err
	}
	rows, cols := c.ui.Size()
	fixed := c.fixed()
	panel := fitChoices(c.Question, c.Options, c.recommended(), fixed, rows, cols)
	if panel.cramped {
		if err := c.ui.Perform(ctx, notice(LevelWarning, "The window is too small for the question; make it larger to read all of it.")); err != nil {
			return Reply{}, err
		}
	}
	index, ok, err := c.ui.Select(ctx, panel.title, panel.lines)
	switch {
	case err != nil:
		return Reply{}, err
	case !ok:
		return c.cancelled(ctx)
	case index < len(c.Options):
		return c.give(ctx, c.Options[index].Label, store.AnswerUser)
	}
	switch fixed[index-len(c.Options)] {
	case fixedAutoComplete:
		if err := c.switchOn(ctx); err != nil {
			return Reply{}, err
		}
		return c.give(ctx, c.Options[c.recommended()].Label, store.AnswerAutoComplete)
	case fixedLoop:
		return c.loop(ctx)
	}
	text, ok, err := c.ui.Input(ctx, panel.title, "your answer")
	if err != nil {
		return Reply{}, err
	}
	if text = oneLine(text); !ok || text == "" {
		return c.cancelled(ctx)
	}
	return c.give(ctx, text, store.AnswerOther)
}

// record makes the question pending in the run, in place of one that was cancelled or
// whose session has died. Where the run has no room for questions, as while it is being
// executed, only the answer is recorded.
func (c *choice) record(ctx context.Context) error {
	if c.run == nil || c.QuestionID == "" {
		return nil
	}
	err := c.s.replaceQuestion(ctx, c.session, c.run.ID, store.PendingQuestion{
		QuestionID: c.QuestionID, Question: c.Question, Options: c.labels(), Purpose: c.Purpose,
		AllowOther: c.AllowOther, AutoComplete: c.AutoComplete,
	})
	var refused *store.StateError
	var corrupt *store.CorruptError
	switch {
	case err == nil:
		c.asked = true
	case c.foreign(err):
	case errors.Is(err, store.ErrNoCheckpoint), errors.As(err, &refused), errors.As(err, &corrupt):
	default:
		return err
	}
	return nil
}

// foreign tells whether an error says that the workspace's run is another session's, and
// forgets that run: what this session asks is not about it.
func (c *choice) foreign(err error) bool {
	if c.own || !notOurs(err) {
		return false
	}
	c.run = nil
	return true
}

// give makes an answer durable and returns it. A session that leaves at this moment
// does not undo what its user has said.
func (c *choice) give(ctx context.Context, answer, source string) (Reply, error) {
	ctx = context.WithoutCancel(ctx)
	given := store.AnsweredQuestion{QuestionID: c.QuestionID, Answer: answer, Source: source}
	var err error
	switch {
	case c.asked:
		var counts store.AnsweredQuestion
		if counts, err = c.s.AnswerQuestion(ctx, c.session, c.run.ID, given); err == nil {
			given = counts
		}
	case c.run != nil:
		err = c.decision(ctx, given)
	}
	if err != nil && !c.foreign(err) {
		return Reply{}, err
	}
	return c.answered(&given, false), nil
}

// decision records an answer in the ledger alone.
func (c *choice) decision(ctx context.Context, given store.AnsweredQuestion) error {
	entry := store.Decision{
		Question: c.Question, Options: c.labels(), Answer: given.Answer, AnswerSource: ledgerSource(given.Source), QuestionID: given.QuestionID,
	}
	return c.s.changeFiles(ctx, c.session, "record-answer", c.run.ID, func(f *files) error {
		_, err := f.run.AppendDecision(entry, f.now())
		return err
	})
}

// answered is the result with an answer. One that was on record counts for nothing else.
func (c *choice) answered(given *store.AnsweredQuestion, earlier bool) Reply {
	if given == nil {
		return Reply{}
	}
	text := "The user chose: "
	switch given.Source {
	case store.AnswerOther:
		text = "The user answered: "
	case store.AnswerAutoComplete:
		text = "Auto-complete took the recommended option: "
	}
	if text += given.Answer; earlier {
		text += "\n(This question was answered before and not asked again.)"
	} else {
		c.s.choices.made(c.session.ID, given.Source == store.AnswerAutoComplete)
	}
	c.reply.Result = &ToolResult{Text: text, Details: c.details(&given.Answer, given.Source)}
	return c.reply
}

// cancelled is the result without an answer. The question stays on record, for a
// resumed session to ask again; the next one takes its place.
func (c *choice) cancelled(ctx context.Context) (Reply, error) {
	if err := c.switchOff(ctx, "question cancelled"); err != nil {
		return Reply{}, err
	}
	c.s.choices.made(c.session.ID, false)
	c.reply.Result = &ToolResult{
		Text:    "The user dismissed the question. That is neither an answer nor an approval: do not go on as if it were one. Stop and let the user say what is wanted.",
		Details: c.details(nil, sourceCancelled),
	}
	return c.reply, nil
}

// loop is the result for the loop of reviews. It is a choice of what to do next and no
// answer to the question, which is taken back.
func (c *choice) loop(ctx context.Context) (Reply, error) {
	ctx = context.WithoutCancel(ctx)
	if c.run != nil {
		if err := c.decision(ctx, store.AnsweredQuestion{Answer: fixedLoop, Source: store.AnswerUser}); err != nil && !c.foreign(err) {
			return Reply{}, err
		}
		if c.asked && c.run != nil {
			if err := c.s.DropQuestion(ctx, c.session, c.run.ID, c.QuestionID); err != nil {
				return Reply{}, err
			}
		}
	}
	c.s.choices.made(c.session.ID, false)
	answer := fixedLoop
	c.reply.Result = &ToolResult{
		Text:    "The user chose: " + fixedLoop + ". Run rounds of review and revision without asking between them.\n\n" + execution.TerminationInstructions(),
		Details: c.details(&answer, store.AnswerUser),
	}
	return c.reply, nil
}

func (c *choice) details(answer *string, source string) json.RawMessage {
	data, _ := json.Marshal(choiceDetails{Question: c.Question, Options: c.labels(), Answer: answer, Source: source}) // strings: cannot fail
	return data
}

func (c *choice) switchOn(ctx context.Context) error {
	actions, err := c.s.autoComplete(context.WithoutCancel(ctx), c.session, c.run)
	if c.foreign(err) {
		err = nil
	}
	c.reply.Actions = append(c.reply.Actions, actions...)
	return err
}

func (c *choice) switchOff(ctx context.Context, reason string) error {
	actions, err := c.s.stopAutoComplete(context.WithoutCancel(ctx), c.session, c.run, reason)
	c.reply.Actions = append(c.reply.Actions, actions...)
	return err
}

// ledgerSource is a source as the ledger tells them apart (spec: execution 5.6).
func ledgerSource(source string) string {
	if source == store.AnswerAutoComplete {
		return source
	}
	return store.AnswerUser
}

// replaceQuestion is [System.AskQuestion] that takes another pending question back.
func (s *System) replaceQuestion(ctx context.Context, session Session, runID string, question store.PendingQuestion) error {
	return s.askQuestion(ctx, session, runID, question, func(now time.Time) store.Change {
		return func(cp *store.Checkpoint) error {
			trial := cp.Clone()
			if pending := trial.PendingQuestion; pending != nil && pending.QuestionID != question.QuestionID {
				trial.PendingQuestion = nil
			}
			if err := store.QuestionAsked(question, now)(&trial); err != nil {
				return err
			}
			*cp = trial
			return nil
		}
	})
}
