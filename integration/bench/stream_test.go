package bench_test

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// conversation is what one child goes through. Its print method turns it into the event
// stream that either generation of Pi would print of it, byte for byte but for
// identifiers, times and counters (Pi fact §3, §4).
type conversation struct {
	system, task string
	turns        []turn
}

// turn is one answer of the model, in the pieces it is streamed in. The last turn
// of a conversation has no call.
type turn struct {
	thinking, text []string
	call           *call
}

// call is a tool call with its result.
type call struct {
	tool, path, result string
	// structured says that the tool repeats its text as structured content, as
	// read does on the newer Pi.
	structured bool
}

// generation is the dialect of a stream.
type generation bool

const (
	oldPi generation = false // 0.73.1: every update carries the whole partial message twice
	newPi generation = true  // 1.6.0: every update carries its piece only
)

func (g generation) String() string {
	if g == newPi {
		return "pi-1.6.0"
	}
	return "pi-0.73.1"
}

// transcript is all that the model says, and answer what it ends with.
func (l conversation) transcript() string {
	var all strings.Builder
	for _, t := range l.turns {
		all.WriteString(strings.Join(t.text, ""))
	}
	return all.String()
}

func (l conversation) answer() string { return strings.Join(l.turns[len(l.turns)-1].text, "") }

// print writes its event stream.
func (l conversation) print(to io.Writer, g generation) error {
	p := printer{out: bufio.NewWriterSize(to, 1<<20), generation: g}
	p.line(`{"type":"session","version":3,"id":"01a22a08-577b-74c0-a614-06bf1b7a1ed3","timestamp":"2026-11-30T01:18:39.484Z","cwd":"/home/dev/project"}`)
	p.line(`{"type":"agent_start"}`)
	p.line(`{"type":"turn_start"}`)
	if g == newPi {
		p.message(`{"role":"system","content":` + quote(l.system) + `,"timestamp":1796001446399}`)
	}
	p.message(`{"role":"user","content":[` + textBlock(l.task) + `],"timestamp":1796001446398}`)
	for i, t := range l.turns {
		if i > 0 {
			p.line(`{"type":"turn_start"}`)
		}
		p.turn(i, t)
	}
	p.printf(`{"type":"agent_end","messages":[%s]`, strings.Join(p.messages, ","))
	if g == newPi {
		p.printf(`,"willRetry":false}` + "\n" + `{"type":"agent_settled","aborted":false`)
	}
	p.line(`}`)
	return p.out.Flush()
}

// printer writes events; a failed write shows when out is flushed.
type printer struct {
	out        *bufio.Writer
	generation generation
	messages   []string // what agent_end repeats
}

func (p *printer) line(words ...string) {
	for _, w := range words {
		_, _ = p.out.WriteString(w)
	}
	_ = p.out.WriteByte('\n')
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

// message prints a message that comes in one piece.
func (p *printer) message(m string) {
	p.line(`{"type":"message_start","message":`, m, `}`)
	p.line(`{"type":"message_end","message":`, m, `}`)
	p.messages = append(p.messages, m)
}

// turn prints one answer as it is streamed, and the tool call it ends in. Pi closes
// the blocks of a message only when all of it has come.
func (p *printer) turn(n int, t turn) {
	m := answer{printer: p, number: n}
	p.line(`{"type":"message_start","message":{"role":"assistant","content":[],`, m.origin(p.pending()), `}}`)
	if len(t.thinking) > 0 {
		m.stream("thinking", t.thinking, `{"type":"thinking","thinking":"`, `","thinkingSignature":"reasoning_content"}`)
	}
	if len(t.text) > 0 {
		m.stream("text", t.text, `{"type":"text","text":"`, `"}`)
	}
	stop := "stop"
	if t.call != nil {
		m.call(*t.call)
		stop = "toolUse"
	}
	m.close(stop)

	whole := m.whole(stop)
	p.line(`{"type":"message_end","message":`, whole, `}`)
	p.messages = append(p.messages, whole)
	var results string
	if t.call != nil {
		results = p.run(m.callID(), *t.call)
	}
	p.line(`{"type":"turn_end","message":`, whole, `,"toolResults":[`, results, `]}`)
}

// pending is the stop reason of a message that has just begun.
func (p *printer) pending() string {
	if p.generation == newPi {
		return "pending"
	}
	return "stop"
}

// run prints what a tool does and returns the message of its result.
func (p *printer) run(id string, c call) string {
	head := `"toolCallId":"` + id + `","toolName":"` + c.tool + `"`
	content := `"content":[` + textBlock(c.result) + `]`
	structured, took := "", ""
	if p.generation == newPi {
		took = `,"durationMs":7`
		if c.structured {
			structured = `,"structuredContent":` + quote(c.result)
		}
	}
	p.line(`{"type":"tool_execution_start",`, head, `,"args":`, c.args(), `}`)
	p.line(`{"type":"tool_execution_end",`, head, `,"result":{`, content, structured, `},"isError":false`, took, `}`)
	result := `{"role":"toolResult",` + head + `,` + content + `,"isError":false` + took + `,"timestamp":1796001446454}`
	p.message(result)
	return result
}

func (c call) args() string { return `{"path":` + quote(c.path) + `}` }

// answer is a message of the model while it is streamed.
type answer struct {
	*printer
	number int
	blocks []string // as they are so far
	ends   []string // the events that will close them
	lines  int      // updates printed so far
}

// Usage as both generations print it; the newer one tells more once it knows.
const (
	zeroUsage = `{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`
	oldUsage  = `{"input":540,"output":20,"cacheRead":0,"cacheWrite":0,"totalTokens":560,"cost":{"input":0.0016200000000000001,"output":0.00030000000000000003,"cacheRead":0,"cacheWrite":0,"total":0.0019200000000000003}}`
	newUsage  = `{"input":530,"output":20,"cacheRead":0,"cacheWrite":0,"reasoning":0,"totalTokens":550,"cost":{"input":0.00159,"output":0.00030000000000000003,"cacheRead":0,"cacheWrite":0,"total":0.0018900000000000002,"totalFromProvider":false}}`
)

// origin is what stands behind the content of a message that is not complete.
func (m *answer) origin(stop string) string { return origin(zeroUsage, stop) }

func origin(usage, stop string) string {
	return `"api":"openai-completions","provider":"sim","model":"think","usage":` + usage +
		`,"stopReason":"` + stop + `","timestamp":1796001446411`
}

// whole is the complete message.
func (m *answer) whole(stop string) string {
	usage, more := oldUsage, ""
	if m.generation == newPi {
		raw := map[string]string{"stop": "stop", "toolUse": "tool_calls"}[stop]
		usage, more = newUsage, `,"rawStopReason":"`+raw+`","durationMs":31,"thinkingLevel":"high"`
	}
	return `{"role":"assistant","content":[` + strings.Join(m.blocks, ",") + `],` + origin(usage, stop) + m.response() + more + `}`
}

func (m *answer) response() string {
	return `,"responseId":"chatcmpl-sim` + strconv.Itoa(m.number) + `"`
}

func (m *answer) callID() string { return "call_" + strconv.Itoa(m.number) + "_0" }

// update prints one update of block index; rest is what its kind adds.
func (m *answer) update(index int, kind, rest, stop string) {
	event := `{"type":"` + kind + `","contentIndex":` + strconv.Itoa(index) + rest
	if m.generation == newPi {
		usage := newUsage
		if m.lines == 0 {
			usage = zeroUsage
		}
		m.lines++
		m.line(`{"type":"message_update","usage":`, usage, `,"assistantMessageEvent":`, event, `}}`)
		return
	}
	usage := zeroUsage
	if strings.HasSuffix(kind, "_end") {
		usage = oldUsage
	}
	partial := `{"role":"assistant","content":[` + strings.Join(m.blocks, ",") + `],` + origin(usage, stop) + m.response() + `}`
	m.line(`{"type":"message_update","assistantMessageEvent":`, event, `,"partial":`, partial, `},"message":`, partial, `}`)
}

// stream prints a block of text or thinking piece by piece; head and tail are
// what stands around its text in the message.
func (m *answer) stream(kind string, pieces []string, head, tail string) {
	index := len(m.blocks)
	m.blocks = append(m.blocks, head+tail)
	m.update(index, kind+"_start", "", "stop")
	body := []byte(head)
	for _, piece := range pieces {
		quoted := quote(piece)
		body = append(body, quoted[1:len(quoted)-1]...)
		m.blocks[index] = string(body) + tail
		m.update(index, kind+"_delta", `,"delta":`+quoted, "stop")
	}
	m.ends = append(m.ends, `,"content":"`+string(body[len(head):])+`"`)
}

// call prints a tool call, whose arguments come in two halves.
func (m *answer) call(c call) {
	index := len(m.blocks)
	head := `{"type":"toolCall","id":"` + m.callID() + `","name":"` + c.tool + `","arguments":`
	args := c.args()
	half := len(args) / 2
	m.blocks = append(m.blocks, head+`{},"partialArgs":"","streamIndex":0}`)
	m.update(index, "toolcall_start", m.named(c), "stop")
	m.update(index, "toolcall_delta", `,"delta":""`, "stop")
	m.update(index, "toolcall_delta", `,"delta":`+quote(args[:half]), "stop")
	m.blocks[index] = head + args + `,"partialArgs":` + quote(args) + `,"streamIndex":0}`
	m.update(index, "toolcall_delta", `,"delta":`+quote(args[half:]), "stop")
	m.blocks[index] = head + args + `}`
	m.ends = append(m.ends, `,"toolCall":`+m.blocks[index])
}

// named is the name that the newer Pi already gives at the start of a call.
func (m *answer) named(c call) string {
	if m.generation == oldPi {
		return ""
	}
	return `,"id":"` + m.callID() + `","toolName":"` + c.tool + `"`
}

// close prints the end of every block.
func (m *answer) close(stop string) {
	for index, rest := range m.ends {
		kind := "text_end"
		switch {
		case strings.HasPrefix(rest, `,"toolCall"`):
			kind = "toolcall_end"
		case strings.HasPrefix(m.blocks[index], `{"type":"thinking"`):
			kind = "thinking_end"
		}
		m.update(index, kind, rest, stop)
	}
}

func textBlock(text string) string { return `{"type":"text","text":` + quote(text) + `}` }
