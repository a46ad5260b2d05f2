package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"pilothouse/lanes/pijson"
	"pilothouse/lanes/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pi is the other end: it answers each line that it is sent.
type pi struct {
	t      *testing.T
	client *rpc.Client
	answer func(command map[string]any) []string // lines of its output

	mu   sync.Mutex
	said []map[string]any
	work sync.WaitGroup
}

func newPi(t *testing.T, answer func(map[string]any) []string) *pi {
	p := &pi{t: t, answer: answer}
	p.client = rpc.New(p.say, nil)
	t.Cleanup(p.work.Wait)
	return p
}

func (p *pi) say(line []byte) error {
	if !strings.HasSuffix(string(line), "\n") || strings.Count(string(line), "\n") != 1 {
		p.t.Errorf("%q is not one line", line)
	}
	var command map[string]any
	if err := json.Unmarshal(line, &command); err != nil {
		p.t.Errorf("%q: %v", line, err)
	}
	p.mu.Lock()
	p.said = append(p.said, command)
	p.mu.Unlock()
	p.work.Go(func() {
		if lines := p.answer(command); lines != nil {
			p.print(lines...)
		}
	})
	return nil
}

// print lets the client read what pi prints.
func (p *pi) print(lines ...string) (taken int) {
	p.t.Helper()
	reader := pijson.NewReader(strings.NewReader(strings.Join(lines, "\n")+"\n"), pijson.ReaderOptions{})
	for {
		event, err := reader.Next()
		if err != nil {
			return taken
		}
		if p.client.Take(event) {
			taken++
		}
	}
}

func accepted(command map[string]any) []string {
	id, _ := command["id"].(string)
	name, _ := command["type"].(string)
	return []string{`{"id":"` + id + `","type":"response","command":"` + name + `","success":true,"data":{"disposition":"started"}}`}
}

func TestACommandReturnsWhenPiHasAcceptedIt(t *testing.T) {
	t.Parallel()
	p := newPi(t, accepted)
	ctx := context.Background()
	for _, err := range []error{p.client.Prompt(ctx, "one\ntwo \u2028 three"), p.client.Steer(ctx, "look here"), p.client.Abort(ctx)} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []map[string]any{
		{"id": "1", "type": "prompt", "message": "one\ntwo \u2028 three"},
		{"id": "2", "type": "steer", "message": "look here"},
		{"id": "3", "type": "abort"},
	}
	if diff := cmp.Diff(want, p.said); diff != "" {
		t.Error(diff)
	}
}

func TestARefusedCommandTellsWhatPiSaid(t *testing.T) {
	t.Parallel()
	for name, response := range map[string]string{
		"with the id":              `{"id":"1","type":"response","command":"prompt","success":false,"error":"Agent is already processing."}`,
		"without (older, §10)":     `{"type":"response","command":"prompt","success":false,"error":"Agent is already processing."}`,
		"as one it could not read": `{"type":"response","command":"parse","success":false,"error":"Agent is already processing."}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPi(t, func(map[string]any) []string { return []string{response} })
			var refused *rpc.RefusedError
			err := p.client.Prompt(context.Background(), "x")
			if !errors.As(err, &refused) || refused.Reason != "Agent is already processing." || refused.Command != "prompt" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestACommandEndsWithTheChildOrItsContext(t *testing.T) {
	t.Parallel()
	silent := func(map[string]any) []string { return nil }
	p := newPi(t, silent)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	if err := p.client.Prompt(ctx, "x"); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.client.Prompt(context.Background(), "x") }()
	p.client.Close()
	if err := <-ended; !errors.Is(err, rpc.ErrGone) {
		t.Errorf("got %v, want %v", err, rpc.ErrGone)
	}
	if err := p.client.Prompt(context.Background(), "x"); !errors.Is(err, rpc.ErrGone) {
		t.Errorf("after the end: %v", err)
	}
	broken := errors.New("broken pipe")
	if err := rpc.New(func([]byte) error { return broken }, nil).Abort(context.Background()); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

func TestADialogOfAnExtensionIsDismissedAndANoticeIsNot(t *testing.T) {
	t.Parallel()
	p := newPi(t, func(map[string]any) []string { return nil })
	taken := p.print(
		`{"type":"extension_ui_request","id":"a","method":"select","title":"Which?","options":["x","y"]}`,
		`{"type":"extension_ui_request","id":"b","method":"confirm","title":"Sure?","message":"really"}`,
		`{"type":"extension_ui_request","id":"c","method":"input","title":"Name","placeholder":"p"}`,
		`{"type":"extension_ui_request","id":"d","method":"editor","title":"Text","prefill":"p"}`,
		`{"type":"extension_ui_request","id":"e","method":"notify","message":"hi","notifyType":"info"}`,
		`{"type":"extension_ui_request","id":"f","method":"setStatus","statusKey":"k","statusText":"t"}`,
		`{"type":"agent_start"}`,
	)
	if taken != 6 {
		t.Errorf("%d events were the client's, want 6", taken)
	}
	p.work.Wait()
	var ids []any
	for _, line := range p.said {
		if line["type"] != "extension_ui_response" || line["cancelled"] != true {
			t.Errorf("said %v", line)
		}
		ids = append(ids, line["id"])
	}
	if diff := cmp.Diff([]any{"a", "b", "c", "d"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestADialogIsAnsweredByWhoeverMadeTheClient(t *testing.T) {
	t.Parallel()
	var said []string
	client := rpc.New(func(line []byte) error { said = append(said, string(line)); return nil }, func(d pijson.Dialog) rpc.Answer {
		switch d.Method {
		case "select":
			return rpc.Answer{Value: d.Options[1]}
		case "confirm":
			return rpc.Answer{Confirmed: true}
		case "input":
			return rpc.Answer{Open: true}
		}
		return rpc.Answer{}
	})
	for _, method := range []string{"select", "confirm", "input", "editor"} {
		client.Take(pijson.Event{Kind: pijson.KindDialog, Dialog: &pijson.Dialog{ID: method, Method: method, Options: []string{"x", "y"}}})
	}
	want := []string{
		`{"id":"select","type":"extension_ui_response","value":"y"}` + "\n",
		`{"confirmed":true,"id":"confirm","type":"extension_ui_response"}` + "\n",
		`{"cancelled":true,"id":"editor","type":"extension_ui_response"}` + "\n",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

// Responses come in any order, some for nobody; each command gets its own.
func TestEveryCommandGetsItsOwnResponse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.IntRange(1, 8).Draw(rt, "commands")
		ids := make(chan string, count)
		client := rpc.New(func(line []byte) error {
			var command struct{ ID, Message string }
			if err := json.Unmarshal(line, &command); err != nil {
				return err
			}
			ids <- command.ID + " " + command.Message
			return nil
		}, nil)
		results := make([]chan error, count)
		sent := make([]string, count) // id by message
		for i := range count {
			results[i] = make(chan error, 1)
			message := string(rune('a' + i))
			go func() { results[i] <- client.Prompt(context.Background(), message) }()
			id, said, _ := strings.Cut(<-ids, " ")
			sent[said[0]-'a'] = id
		}
		turns := make([]int, count)
		for i := range turns {
			turns[i] = i
		}
		for _, i := range rapid.Permutation(turns).Draw(rt, "order") {
			client.Take(pijson.Event{Kind: pijson.KindResponse, Response: &pijson.Response{ID: "stray", Success: true}})
			client.Take(pijson.Event{Kind: pijson.KindResponse, Response: &pijson.Response{ID: sent[i], Error: string(rune('a' + i))}})
			var refused *rpc.RefusedError
			if err := <-results[i]; !errors.As(err, &refused) || refused.Reason != string(rune('a'+i)) {
				rt.Fatalf("command %d got %v", i, err)
			}
		}
	})
}

// FuzzStream: whatever a child prints, the client neither fails nor answers anything
// but dialogs that wait for it, each with one line of JSON.
func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"id":"1","type":"response","command":"prompt","success":true}` + "\n"))
	f.Add([]byte(`{"type":"response","success":false,"error":"x"}` + "\n" + `{"type":"extension_ui_request","id":"a","method":"select","title":7}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dialogs := 0
		client := rpc.New(func(line []byte) error {
			var said map[string]any
			if err := json.Unmarshal(line, &said); err != nil || said["type"] != "extension_ui_response" {
				t.Fatalf("said %q", line)
			}
			dialogs--
			return nil
		}, nil)
		reader := pijson.NewReader(strings.NewReader(string(data)), pijson.ReaderOptions{})
		for {
			event, err := reader.Next()
			if err != nil {
				break
			}
			if event.Dialog != nil && event.Dialog.NeedsAnswer() {
				dialogs++
			}
			client.Take(event)
		}
		if dialogs != 0 {
			t.Fatalf("%d dialogs were not answered", dialogs)
		}
		client.Close()
	})
}
