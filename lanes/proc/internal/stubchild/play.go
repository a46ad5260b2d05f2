package main

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// This file plays pi, in the form of Pi 1.6.0. A player reads its task and prints
// numbered text deltas. It notes in a file of its own in the journal what it is
// about to do and what it has done, so that a test can compare the lane's record
// with what really happened. Its name there is <lane's name>.<n> for the n-th
// child of that lane.

// player is a stub that plays pi.
type player struct {
	*stub
	out    *bufio.Writer
	random *rand.Rand
	notes  *os.File
	token  string // unique in its journal
	deltas int
	text   strings.Builder // of the message being streamed
	pause  time.Duration   // after every tenth delta
}

// conducts are what a child does, and how often relative to each other.
var conducts = []struct {
	name   string
	weight int
	play   func(p *player)
}{
	{"answers at once", 6, func(p *player) { p.answer(1) }},
	{"streams", 8, func(p *player) { p.turns(3, 200); p.answer(1 + p.random.IntN(1000)) }},
	{"streams slowly", 16, func(p *player) {
		p.pause = time.Duration(1+p.random.IntN(20)) * time.Millisecond
		p.turns(3, 500)
		p.answer(1 + p.random.IntN(1000))
	}},
	{"has bad credentials", 2, func(p *player) { p.fail("401: bad key") }},
	{"is told to slow down", 5, func(p *player) { p.turns(2, 20); p.fail("429: slow down") }},
	{"is killed", 2, func(p *player) { p.breakOff(100); p.then = "kill:KILL" }},
	{"hangs", 2, func(p *player) { p.breakOff(100); p.then = "hang" }},
	{"hangs and ignores TERM", 1, func(p *player) { p.stubborn(); p.breakOff(100); p.then = "hang" }},
	{"answers and stays", 2, func(p *player) { p.answer(20); p.then = "hang" }},
	{"answers, stays and ignores TERM", 1, func(p *player) { p.stubborn(); p.answer(20); p.then = "hang" }},
	{"prints long lines", 2, func(p *player) {
		p.say(strings.Repeat("x", 2<<20))
		p.say(`{"type":"tool_execution_start","toolCallId":"c1","toolName":"read","args":{}}`)
		p.say(`{"type":"tool_execution_end","toolCallId":"c1","toolName":"read","result":{"content":[{"type":"text","text":"` + strings.Repeat("y", 1<<20) + `"}]},"isError":false}`)
		p.message(strings.Repeat("z", 300<<10), "toolUse", "")
		p.answer(50)
	}},
	{"prints noise", 3, func(p *player) {
		for range 50 {
			p.say([]string{"npm warn deprecated", "null", "[]", "{}", "", "\x1b[31mred\x1b[0m", `{"type":7}`}[p.random.IntN(7)])
			p.stream(1 + p.random.IntN(3))
		}
		p.answer(10)
	}},
	{"closes its output and hangs", 1, func(p *player) { p.breakOff(100); p.then = "close-stdout" }},
	{"cannot start", 2, func(p *player) { p.note("printed 0"); p.then = "exit:127" }},
	{"floods stderr", 2, func(p *player) { filler(os.Stderr, 4<<20); p.answer(20) }},
	{"leaves a daemon", 2, func(p *player) { p.spawn("daemon"); p.answer(20) }},
	{"stops in the middle", 2, func(p *player) { p.breakOff(200) }},
}

// perform plays pi: "random:SEED" draws a conduct, "hold:BYTES" prints that many
// bytes, starts a tool and hangs, "steady:D" streams until the gate opens.
func (s *stub) perform() {
	p := &player{stub: s, out: bufio.NewWriter(os.Stdout)}
	ordinal := p.claim()
	what, value, _ := strings.Cut(s.play, ":")
	lane := laneName()
	_, afterTime, _ := strings.Cut(lane, "Z-") // what is the same when the seed is played again
	seed := fnv.New64a()
	fmt.Fprint(seed, value, afterTime)
	p.random = rand.New(rand.NewPCG(seed.Sum64(), uint64(ordinal)))
	p.token = fmt.Sprintf("%08x.%d", uint32(seed.Sum64()), ordinal)
	p.note("token " + p.token)
	_, _ = io.Copy(io.Discard, os.Stdin)
	p.note("fed")
	if s.startDelay > 0 {
		time.Sleep(time.Duration(p.random.Int64N(int64(s.startDelay))))
	}
	switch what {
	case "hold":
		p.open()
		p.hold(number(value))
		return
	case "steady":
		p.open()
		p.steady(duration(value))
		return
	}
	total := 0
	for _, c := range conducts {
		total += c.weight
	}
	draw := p.random.IntN(total)
	for _, c := range conducts {
		if draw -= c.weight; draw < 0 {
			p.note("conduct " + c.name)
			if c.name != "cannot start" {
				p.open()
			}
			c.play(p)
			return
		}
	}
}

// claim makes the file of notes of the next child of its lane.
func (p *player) claim() int {
	for n := 1; ; n++ {
		file := filepath.Join(p.journal, fmt.Sprintf("%s.%d", laneName(), n))
		notes, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
		switch {
		case err == nil:
			p.notes = notes
			return n
		case !os.IsExist(err):
			fail("%v", err)
		}
	}
}

// laneName is the label that the orchestrator has put into the marker.
func laneName() string {
	marks := strings.Split(os.Getenv("PILOTHOUSE_LANE"), ",")
	name, _, _ := strings.Cut(marks[len(marks)-1], ":")
	return name
}

func (p *player) note(text string) { _, _ = fmt.Fprintln(p.notes, text) }

func (p *player) stubborn() {
	p.ignore = []string{"TERM"}
	p.ignoreSignals()
}

func (p *player) say(line string) {
	_, _ = p.out.WriteString(line)
	_ = p.out.WriteByte('\n')
}

func (p *player) open() {
	p.say(`{"type":"session","version":3,"id":"01a22a07-3539-7470-9215-968823c00d22","timestamp":"2026-11-30T01:17:25.178Z","cwd":"/"}`)
	p.say(`{"type":"agent_start"}`)
	p.say(`{"type":"turn_start"}`)
	p.say(`{"type":"message_start","message":{"role":"system","content":"(left out)"}}`)
	p.say(`{"type":"message_end","message":{"role":"system","content":"(left out)"}}`)
}

const usage = `{"input":487,"output":5,"cacheRead":0,"cacheWrite":0,"reasoning":0,"totalTokens":492,"cost":{"input":0.001461,"output":0.000075,"cacheRead":0,"cacheWrite":0,"total":0.001536}}`

// stream prints n deltas of the message at hand.
func (p *player) stream(n int) {
	for range n {
		p.deltas++
		delta := fmt.Sprintf("%s:%d of the numbered pieces of this text\\n", p.token, p.deltas)
		p.text.WriteString(delta)
		p.say(`{"type":"message_update","usage":` + usage + `,"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"` + delta + `"}}`)
		if p.pause > 0 && p.deltas%10 == 0 {
			_ = p.out.Flush()
			time.Sleep(p.pause)
		}
	}
}

// message prints the end of an assistant message.
func (p *player) message(text, stop, failure string) {
	content := ""
	if text != "" {
		content = `{"type":"text","text":"` + text + `"}`
	}
	if failure != "" {
		failure = `,"errorMessage":"` + failure + `"`
	}
	p.text.Reset()
	p.say(`{"type":"message_end","message":{"role":"assistant","content":[` + content + `],"provider":"stub","model":"stub","usage":` + usage + `,"stopReason":"` + stop + `"` + failure + `}}`)
}

// turns prints up to n turns that are not the last.
func (p *player) turns(n, deltas int) {
	for range p.random.IntN(n) {
		p.stream(p.random.IntN(deltas))
		p.message(p.text.String(), "toolUse", "")
		p.say(`{"type":"turn_start"}`)
	}
}

// answer streams a whole answer and ends the run.
func (p *player) answer(deltas int) {
	p.stream(deltas)
	p.note(fmt.Sprintf("answers %d", p.deltas))
	p.message(p.text.String(), "stop", "")
	_ = p.out.Flush()
	p.note("answered")
	p.settle()
}

// fail ends the run with a provider's error.
func (p *player) fail(reason string) {
	p.message("", "error", reason)
	p.settle()
	p.note(fmt.Sprintf("printed %d", p.deltas))
}

func (p *player) settle() {
	p.say(`{"type":"agent_end","messages":[],"willRetry":false}`)
	p.say(`{"type":"agent_settled","aborted":false}`)
	_ = p.out.Flush()
}

// breakOff streams up to n deltas of an answer whose end does not come.
func (p *player) breakOff(n int) {
	p.stream(1 + p.random.IntN(n))
	_ = p.out.Flush()
	p.note(fmt.Sprintf("printed %d", p.deltas))
}

// hold prints about n bytes of one message and then seems to read a file for ever.
func (p *player) hold(n int) {
	p.message(strings.Repeat("z", 100<<10), "toolUse", "") // a turn with a long text came before
	for printed := 0; printed < n; printed += 100 * (len(usage) + 200) {
		p.stream(100)
		p.text.Reset()
	}
	p.say(`{"type":"tool_execution_start","toolCallId":"c1","toolName":"read","args":{}}`)
	_ = p.out.Flush()
	p.note(fmt.Sprintf("printed %d", p.deltas))
	p.then = "hang"
}

// steady prints a delta every so often until the gate opens for this child, then the
// answer.
func (p *player) steady(every time.Duration) {
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		gate, err := os.Open(p.gate)
		if err == nil {
			_, err = gate.Read(make([]byte, 1))
		}
		if err != nil {
			fail("%v", err)
		}
	}()
	for pause := time.NewTicker(every); ; {
		p.stream(1)
		_ = p.out.Flush()
		select {
		case <-opened:
			p.answer(1)
			return
		case <-pause.C:
		}
	}
}
