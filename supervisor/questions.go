package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pilothouse/store"
)

// AskQuestion makes a question of a session pending in a run. It is durable when
// AskQuestion returns, so whoever asks may show it. Asking the pending question
// again replaces it. AskedAt is set here. Errors: *InputError, *store.OwnedError,
// and *store.StateError while another question is pending, once this one has an
// answer, and in a phase without questions (spec: checkpoint 2.3).
func (s *System) AskQuestion(ctx context.Context, session Session, runID string, question store.PendingQuestion) error {
	return s.askQuestion(ctx, session, runID, question, func(now time.Time) store.Change { return store.QuestionAsked(question, now) })
}

func (s *System) askQuestion(ctx context.Context, session Session, runID string, question store.PendingQuestion, step func(now time.Time) store.Change) error {
	if err := checkQuestionID(question.QuestionID); err != nil {
		return err
	}
	if question.Question == "" {
		return inputErrorf("question %s has no text", question.QuestionID)
	}
	_, err := s.changeRun(ctx, session, "ask-question", runID, func(context.Context, store.RunDir) (*planChange, error) {
		return &planChange{
			files: func(f *files) (any, error) { return nil, refuseAnswered(f, question.QuestionID) },
			step:  step,
		}, nil
	})
	return err
}

// AnswerQuestion records the answer to the pending question: in the ledger first,
// then in the checkpoint. It returns the answer that counts once it is durable. An
// answer that is on record already wins over a later one, so a caller that lost the
// reply may simply answer again. AnsweredAt is set here. Errors: *InputError,
// *store.OwnedError, and *store.StateError when the question is not pending.
func (s *System) AnswerQuestion(ctx context.Context, session Session, runID string, answer store.AnsweredQuestion) (store.AnsweredQuestion, error) {
	if err := checkQuestionID(answer.QuestionID); err != nil {
		return store.AnsweredQuestion{}, err
	}
	if !slices.Contains([]string{store.AnswerUser, store.AnswerAutoComplete, store.AnswerOther}, answer.Source) {
		return store.AnsweredQuestion{}, inputErrorf("the source %q of an answer is none of user, auto-complete and other", answer.Source)
	}
	cp, err := s.changeRun(ctx, session, "answer-question", runID, func(context.Context, store.RunDir) (*planChange, error) {
		given := answer
		return &planChange{
			files: func(f *files) (_ any, err error) {
				given, err = recordAnswer(f, answer)
				return nil, err
			},
			step: func(now time.Time) store.Change { return answered(given, now) },
		}, nil
	})
	if err != nil {
		return store.AnsweredQuestion{}, err
	}
	i := slices.IndexFunc(cp.AnsweredQuestions, func(a store.AnsweredQuestion) bool { return a.QuestionID == answer.QuestionID })
	if i < 0 {
		return store.AnsweredQuestion{}, fmt.Errorf("answer question %s: the checkpoint of run %s lost the answer", answer.QuestionID, runID)
	}
	return cp.AnsweredQuestions[i], nil
}

// DropQuestion takes a pending question back that its user has cancelled: while it
// is pending no other can be asked. Dropping one that is not pending does nothing.
func (s *System) DropQuestion(ctx context.Context, session Session, runID, questionID string) error {
	if err := checkQuestionID(questionID); err != nil {
		return err
	}
	_, err := s.changeRun(ctx, session, "drop-question", runID, func(context.Context, store.RunDir) (*planChange, error) {
		return &planChange{step: func(time.Time) store.Change { return store.QuestionDropped(questionID) }}, nil
	})
	return err
}

func checkQuestionID(id string) error {
	if !store.ValidID(id) {
		return inputErrorf("question id %q: an id has up to 128 letters, digits, dots, dashes and underscores, and starts with a letter or digit", id)
	}
	return nil
}

// refuseAnswered refuses a question that the ledger has an answer of: after a crash
// that answer would be taken for one to the new question.
func refuseAnswered(f *files, questionID string) error {
	earlier, err := ledgerAnswer(*f.run, questionID)
	if err == nil && earlier != nil {
		err = &store.StateError{Step: "ask a question", Reason: "question " + questionID + " is already answered"}
	}
	return err
}

// recordAnswer records an answer in the ledger, unless the question has one there
// already, and returns the one that counts. A refused answer leaves no line.
func recordAnswer(f *files, answer store.AnsweredQuestion) (store.AnsweredQuestion, error) {
	earlier, err := ledgerAnswer(*f.run, answer.QuestionID)
	if err != nil {
		return answer, err
	}
	if earlier != nil {
		return *earlier, nil
	}
	cp, err := f.run.LoadCheckpoint()
	if err != nil {
		return answer, err
	}
	rehearsal := cp.Clone()
	if err := answered(answer, f.now())(&rehearsal); errors.Is(err, store.ErrNoChange) {
		return answer, nil // only the checkpoint has its answer
	} else if err != nil {
		return answer, err
	}
	entry := store.Decision{
		Question: cp.PendingQuestion.Question, Options: cp.PendingQuestion.Options,
		Answer: answer.Answer, AnswerSource: ledgerSource(answer.Source), QuestionID: answer.QuestionID,
	}
	_, err = f.run.AppendDecision(entry, f.now())
	return answer, err
}

// ledgerAnswer is the last answer that the ledger has of a question, nil without one.
func ledgerAnswer(run store.RunDir, questionID string) (*store.AnsweredQuestion, error) {
	decisions, err := run.Decisions()
	if err != nil {
		return nil, err
	}
	for _, d := range slices.Backward(decisions) {
		if d.QuestionID != questionID {
			continue
		}
		answer := &store.AnsweredQuestion{QuestionID: questionID, Answer: d.Answer, Source: store.AnswerUser}
		if d.AnswerSource == store.AnswerAutoComplete {
			answer.Source = store.AnswerAutoComplete
		}
		return answer, nil
	}
	return nil, nil
}

// answered is [store.QuestionAnswered] that finds an answer on record sufficient.
func answered(answer store.AnsweredQuestion, now time.Time) store.Change {
	return func(cp *store.Checkpoint) error {
		if cp.Answered(answer.QuestionID) {
			return store.ErrNoChange
		}
		return store.QuestionAnswered(answer.QuestionID, answer.Answer, answer.Source, now)(cp)
	}
}

// settle is the first change of a run that has become ours. A crash may have come
// between the ledger's line of an answer and the checkpoint; then the line counts,
// and the question is not asked again (seed: "the answered entry wins").
type settle struct {
	answer *store.AnsweredQuestion
	status store.RunStatus // what the run is at, "" when that cannot be read
	phase  store.Phase
}

func (c *settle) store(f *files) error {
	run, _ := f.run.Load() // what is wrong with it is told by whoever needs it
	cp, err := f.run.LoadCheckpoint()
	c.status, c.phase = run.Status, cp.Phase
	if errors.Is(err, store.ErrNoCheckpoint) || err == nil && cp.PendingQuestion == nil {
		return nil
	}
	if err != nil {
		return err
	}
	c.answer, err = ledgerAnswer(*f.run, cp.PendingQuestion.QuestionID)
	return err
}

func (c *settle) reduce(now time.Time) store.Change {
	if c.answer == nil {
		return nil
	}
	return answered(*c.answer, now)
}
