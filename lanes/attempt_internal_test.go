package lanes

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
)

// pipeChild is a child that prints by a script, in the time of a synctest bubble.
type pipeChild struct {
	out    *io.PipeReader
	in     *io.PipeWriter
	ended  chan struct{} // closed when it is asked to end
	once   sync.Once
	gone   chan struct{}
	killed time.Duration // after its start; 0 when it ended by itself
}

// play starts a child. The script says which lines come, and how long after the
// line before; the child exits behind the last.
func play(script []line) *pipeChild {
	c := &pipeChild{ended: make(chan struct{}), gone: make(chan struct{})}
	c.out, c.in = io.Pipe()
	begin := time.Now()
	go func() {
		defer close(c.gone)
		defer c.in.Close()
		for _, l := range script {
			select {
			case <-time.After(l.after):
			case <-c.ended:
				c.killed = time.Since(begin)
				return
			}
			_, _ = io.WriteString(c.in, l.text+"\n")
		}
	}()
	return c
}

type line struct {
	after time.Duration
	text  string
}

func (c *pipeChild) Feed([]byte)           {}
func (c *pipeChild) Stdout() io.Reader     { return c.out }
func (c *pipeChild) Terminate()            { c.once.Do(func() { close(c.ended) }) }
func (c *pipeChild) Done() <-chan struct{} { return c.gone }

func (c *pipeChild) Wait() proc.Exit {
	<-c.gone
	if c.killed > 0 {
		return proc.Exit{Code: 143, Signal: "SIGTERM"}
	}
	return proc.Exit{}
}

func TestAForeignToolThatRunsEndsTheChildAndOneThatPiRefusesDoesNot(t *testing.T) {
	t.Parallel()
	const (
		begins  = `{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"make"}}`
		again   = `{"type":"tool_execution_start","toolCallId":"c2","toolName":"bash","args":{"command":"make"}}`
		refuses = `{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":[{"type":"text","text":"Tool bash not found"}]},"isError":true}`
		refused = `{"type":"tool_execution_end","toolCallId":"c2","toolName":"bash","result":{"content":[{"type":"text","text":"Tool bash not found"}]},"isError":true}`
		brings  = `{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":[{"type":"text","text":"built"}]},"isError":false}`
		fails   = `{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":[{"type":"text","text":"exit status 2"}]},"isError":true}`
		answers = `{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"done"}],"stopReason":"stop"}}`
		settles = `{"type":"agent_settled","aborted":false}`
	)
	const soon, late = 200 * time.Millisecond, time.Minute
	tests := []struct {
		name   string
		script []line
		killed time.Duration // 0: it goes on to its answer
		status pijson.Status
	}{
		{
			name:   "it runs on",
			script: []line{{0, begins}, {late, answers}, {0, settles}}, killed: foreignToolGrace, status: pijson.StatusFailed,
		},
		{
			name:   "it has run",
			script: []line{{0, begins}, {soon, brings}, {late, answers}, {0, settles}}, killed: foreignToolGrace, status: pijson.StatusFailed,
		},
		{
			name:   "it has run and failed by itself",
			script: []line{{0, begins}, {soon, fails}, {late, answers}, {0, settles}}, killed: foreignToolGrace, status: pijson.StatusFailed,
		},
		{
			name:   "it is refused at once",
			script: []line{{0, begins}, {0, refuses}, {late, answers}, {0, settles}}, status: pijson.StatusComplete,
		},
		{
			name:   "it is refused after a moment",
			script: []line{{0, begins}, {soon, refuses}, {late, answers}, {0, settles}}, status: pijson.StatusComplete,
		},
		{
			name:   "it is refused twice, the second time when the first is nearly a second ago",
			script: []line{{0, begins}, {0, refuses}, {foreignToolGrace - soon/2, again}, {soon, refused}, {late, answers}, {0, settles}},
			status: pijson.StatusComplete,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := Limits{}.withDefaults()
				run := &attempt{
					spec: Spec{Tools: []string{"read"}}, limits: limits, deadline: time.Now().Add(limits.Lane), budget: budget{limits: limits},
					report: func(pijson.Progress, string) {},
				}
				child := play(append([]line{{0, `{"type":"agent_start"}`}, {0, `{"type":"turn_start"}`}}, test.script...))
				result := run.run(context.Background(), child)
				if child.killed != test.killed {
					t.Errorf("the child was ended after %v, want %v", child.killed, test.killed)
				}
				if result.verdict.Status != test.status {
					t.Errorf("%s: %s", result.verdict.Status, result.verdict.Message)
				}
				if test.status == pijson.StatusFailed && result.verdict.Class != pijson.ClassProtocol {
					t.Errorf("class %s", result.verdict.Class)
				}
			})
		})
	}
}
