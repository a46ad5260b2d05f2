package supervisor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
	"pilothouse/lanes/rpc"
	"pilothouse/store"
)

// PlanRequest asks for a plan to be made by a Pi session that nobody sits before: its
// questions are answered from a list, and it ends where the list has no answer.
type PlanRequest struct {
	// Session says where and with which pi. Its Environ leads the extension to a daemon.
	// Its Model is that of the planner.
	Session
	// Prompt is the session's first message.
	Prompt string
	// Extension is the file of the extension that the session has.
	Extension string
	Answers   []PlanAnswer
	Limits    lanes.Limits
}

// PlanAnswer is the answer to a question of a planner.
type PlanAnswer struct {
	// Question is a part of its text, whatever the case of its letters.
	Question string `json:"question"`
	// Answer is a part of the option to choose, or, where none has it, the user's own
	// answer.
	Answer string `json:"answer"`
}

// OpenQuestion is one that only a person can answer.
type OpenQuestion struct {
	Title   string   `json:"title"`
	Message string   `json:"message,omitempty"`
	Options []string `json:"options,omitempty"`
}

// PlanResult is what a planner came to.
type PlanResult struct {
	// RunID is the run that it has worked on, "" when it began none.
	RunID      string `json:"runId,omitempty"`
	PlanPath   string `json:"planPath,omitempty"`
	PlanSHA256 string `json:"planSha256,omitempty"`
	// Question is what has to be answered before it goes on, nil when it came to rest.
	Question *OpenQuestion `json:"question,omitempty"`
	// Reason says why it ended early, "" when it did not.
	Reason string `json:"reason,omitempty"`
	// Text is the last thing that it said.
	Text       string       `json:"text,omitempty"`
	Model      string       `json:"model,omitempty"`
	Turns      int          `json:"turns"`
	Usage      pijson.Usage `json:"usage"`
	DurationMs int64        `json:"durationMs"`
}

// plannerTools are what a planner may use. While a plan is made, the write guard of the
// extension keeps it to planning artifacts.
var plannerTools = []string{
	"read", "bash", "edit", "write", "grep", "find", "ls",
	"plans", "ask_choice", "refine", "analyze_refs", "execute_plan", "exit_plan_mode",
}

// PlanSession runs a planner until it rests, or asks what only a person can answer: a
// question without an answer in the list, or any confirmation, as that of an execution.
// What it has reached is on record by then; an open question stays pending in its run.
// Errors tell that it did not begin: *InputError, *lanes.CommandError, *proc.StartError.
func (s *System) PlanSession(ctx context.Context, req PlanRequest, watch Watch) (PlanResult, error) {
	if watch == nil {
		watch = func(any) {}
	}
	root, _, err := store.Ensure(ctx, req.Workdir)
	if err != nil {
		return PlanResult{}, err
	}
	host, err := s.host(req.Session, root)
	if err != nil {
		return PlanResult{}, err
	}
	host.Extension = req.Extension
	before, _, err := root.Active()
	if err != nil {
		return PlanResult{}, err
	}
	spec := lanes.Spec{
		ID: "planner", Name: "pi-plans-planner", Role: "planner", Dir: root.Workdir, Model: req.Model, Tools: plannerTools,
		SystemPrompt: plannerPrompt, Limits: req.Limits,
	}
	p := &planner{answers: req.Answers, watch: watch, rested: make(chan struct{}, 1), news: make(chan struct{}, 1), asked: make(chan OpenQuestion, 1)}
	began := time.Now()
	session, err := lanes.OpenSession(ctx, host, spec, p.hear, p.answer)
	if err != nil {
		return PlanResult{}, err
	}
	result := p.follow(ctx, session, req.Prompt)
	end := session.Wait()
	result.Model, result.Turns, result.Usage, result.DurationMs = end.Model, end.Turns, end.Usage, time.Since(began).Milliseconds()
	result.Text = p.said()
	if result.Question == nil && result.Reason == "" && end.Error != nil {
		result.Reason = end.Error.Message
	}
	return result, result.describe(root, before)
}

// plannerPrompt tells a planner that it is alone.
const plannerPrompt = `Nobody sits before this session. Ask every question with ask_choice, one at a time and with a stable questionId: the answers were written down before, and one that is missing ends the session, to go on another day. Do not ask in plain text, and do not go on as if something were answered that is not. When the plan is written and reviewed as its skill says, stop: its execution is for its user to approve.
`

// planner is a planning session on its way.
type planner struct {
	answers []PlanAnswer
	watch   Watch
	rested  chan struct{} // there is a new rest
	news    chan struct{} // there is new progress
	asked   chan OpenQuestion

	mu       sync.Mutex
	rest     lanes.Rested
	progress lanes.Progress
	last     string
	own      string // the answer that the next free input gets
}

// How long a planner at rest may begin again by itself: the extension compacts a session
// before it plans, which aborts what the agent does, and then sends it on its way.
const (
	quietTime   = 3 * time.Second
	abortedTime = 30 * time.Second
)

// follow gives the planner its request and waits until it rests, asks, or ends.
func (p *planner) follow(ctx context.Context, session *lanes.Session, prompt string) (result PlanResult) {
	if err := session.Prompt(ctx, prompt); err != nil {
		session.Cancel(err.Error())
		result.Reason = err.Error()
		return result
	}
	var last lanes.Rested
	quiet := time.NewTimer(abortedTime)
	defer quiet.Stop()
	for {
		select {
		case <-p.rested:
			p.mu.Lock()
			last = p.rest
			p.mu.Unlock()
			wait := quietTime
			if last.Aborted {
				wait = abortedTime
			}
			quiet.Reset(wait)
			continue
		case <-p.news:
			p.mu.Lock()
			progress := p.progress
			p.mu.Unlock()
			p.watch(progress)
			continue
		case <-quiet.C:
			if session.Working() {
				quiet.Reset(abortedTime)
				continue
			}
			session.End()
			if last.StopReason != "stop" {
				result.Reason = strings.TrimSuffix("the planner stopped with "+last.StopReason+": "+last.Error, ": ")
			}
		case question := <-p.asked:
			session.Cancel("a question needs a person")
			result.Question = &question
		case <-session.Done():
		case <-ctx.Done():
			result.Reason = fmt.Sprint(context.Cause(ctx))
			session.Cancel(result.Reason)
		}
		return result
	}
}

func (p *planner) hear(event any) {
	switch event := event.(type) {
	case lanes.Rested:
		p.mu.Lock()
		p.rest = event
		p.mu.Unlock()
		select {
		case p.rested <- struct{}{}:
		default: // the last rest is not looked at yet
		}
	case lanes.Turn:
		if text := strings.TrimSpace(event.Text); text != "" {
			p.mu.Lock()
			p.last = text
			p.mu.Unlock()
		}
	case lanes.Progress:
		p.mu.Lock()
		p.progress = event
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default: // the watch is slow, and is shown the latest
		}
	}
}

func (p *planner) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// answer answers a dialog from the list. A confirmation is always a person's.
func (p *planner) answer(dialog pijson.Dialog) rpc.Answer {
	if answer, found := p.find(dialog); found {
		return answer
	}
	select {
	case p.asked <- OpenQuestion{Title: dialog.Title, Message: dialog.Message, Options: dialog.Options}:
	default: // it has asked already, and is being ended
	}
	return rpc.Answer{Open: true}
}

func (p *planner) find(dialog pijson.Dialog) (rpc.Answer, bool) {
	switch dialog.Method {
	case "input":
		p.mu.Lock()
		defer p.mu.Unlock()
		own := p.own
		p.own = ""
		return rpc.Answer{Value: own}, own != ""
	case "select":
	default:
		return rpc.Answer{}, false
	}
	for _, planned := range p.answers {
		if !holdsFold(dialog.Title, planned.Question) {
			continue
		}
		for _, option := range dialog.Options {
			if holdsFold(option, planned.Answer) {
				return rpc.Answer{Value: option}, true
			}
		}
		for _, option := range dialog.Options {
			if option == fixedOther {
				p.mu.Lock()
				p.own = planned.Answer
				p.mu.Unlock()
				return rpc.Answer{Value: option}, true
			}
		}
	}
	return rpc.Answer{}, false
}

func holdsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// describe fills in the run that the session has worked on, which is the active one when
// it has begun a run or there was one before.
func (r *PlanResult) describe(root store.Root, before store.RunDir) error {
	run, found, err := root.Active()
	if err != nil || !found {
		return err
	}
	record, err := run.Load()
	if err != nil || run.ID == before.ID && record.Status.Terminal() {
		return err
	}
	r.RunID = run.ID
	path, _, err := store.LatestPlan(record.ArtifactDir)
	if err != nil { // none is written yet
		return nil
	}
	r.PlanPath = filepath.Clean(path)
	r.PlanSHA256, err = store.SHA256File(path)
	return err
}
