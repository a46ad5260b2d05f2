package scriptedmodel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pilothouse/integration/scriptedmodel"
)

func TestTheStepIsChosenByTheScriptTheRuleAndTheTurn(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{Rules: []scriptedmodel.Rule{
		{Match: `(?i)review.*security`, Steps: []step{{Text: "rule 1"}, {Text: "rule 1, turn 2"}}},
		{Match: `review`, Steps: []step{{Text: "rule 2"}}},
	}})
	two := scripted(step{Text: "first"}, step{Text: "second"})
	parts := msg{"role": "user", "content": []any{
		map[string]any{"type": "text", "text": "go <<SIM {"},
		map[string]any{"type": "text", "text": `"text":"from parts"}>>`},
	}}
	tests := []struct {
		name     string
		messages []msg
		want     string
	}{
		{"no script and no rule", []msg{user("hi")}, "ok"},
		{"no user message at all", []msg{{"role": "system", "content": "review"}}, "ok"},
		{"the first step first", []msg{two}, "first"},
		{"the second after an answer", []msg{two, assistant("first")}, "second"},
		{"the last one repeats", []msg{two, assistant("first"), assistant("second"), assistant("second")}, "second"},
		{"answers before the script do not count", []msg{user("hi"), assistant("ok"), two}, "first"},
		{"the last script decides", []msg{two, assistant("first"), scripted(step{Text: "new"})}, "new"},
		{"a later message without script leaves it", []msg{two, assistant("first"), user("go on")}, "second"},
		{"a script wins over a rule", []msg{user("review " + scriptedmodel.Script(step{Text: "script"}))}, "script"},
		{"the first rule that matches", []msg{user("REVIEW\nfor"), user("Review the security")}, "rule 1"},
		{"the second turn of a rule", []msg{user("Review the security"), assistant("rule 1")}, "rule 1, turn 2"},
		{"the next rule", []msg{user("please review")}, "rule 2"},
		{"rules look at the last user message only", []msg{user("please review"), assistant("x"), user("thanks")}, "ok"},
		{"a single step without brackets", []msg{user("<<SIM\n {\"text\":\"single\"}\n>>")}, "single"},
		{"a list after white space", []msg{user("<<SIM\n\t [{\"text\":\"listed\"}]>>")}, "listed"},
		{"an empty list", []msg{user("<<SIM []>>")}, "ok"},
		{"a script in a list of parts", []msg{parts}, "from parts"},
		{"brackets within a string", []msg{user(`<<SIM {"text":"cat a >> b"}>>`)}, "cat a >> b"},
		{"an opening without an end is plain text", []msg{user("what is <<SIM good for?")}, "ok"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := ask(t, srv, tt.messages...); got.said() != tt.want {
				t.Errorf("said %q, want %q; body %s", got.said(), tt.want, got.body)
			}
		})
	}
}

func TestWhatARealServiceRefusesIsRefused(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	task := user("task")
	tests := []struct {
		name     string
		messages []msg
		want     string // part of the message; empty: accepted
	}{
		{"calls and results that pair", []msg{task, calling("a", "b"), result("b"), result("a"), assistant("x"), calling("a"), result("a")}, ""},
		{"no messages", nil, "must not be empty"},
		{"a result without a call", []msg{task, result("a")}, `tool result "a" answers no open call`},
		{"a result of another call", []msg{task, calling("a"), result("b")}, `tool result "b" answers no open call`},
		{"a result given twice", []msg{task, calling("a"), result("a"), result("a")}, `messages[3]: tool result "a"`},
		{"a call that is not answered", []msg{task, calling("a")}, `tool call "a" has no tool message`},
		{"a call that is answered too late", []msg{task, calling("a"), user("well?"), result("a")}, `messages[2]: tool call "a" must be answered by a tool message before a user message`},
		{"a call id used twice", []msg{task, calling("a", "a"), result("a")}, `tool call id "a" is empty or used twice`},
		{"a script that is no JSON", []msg{user("<<SIM {text:1}>>")}, "script is not JSON"},
		{"a script with more behind it", []msg{user("<<SIM {} {}>>")}, "must end with >>"},
		{"a field that does not exist", []msg{user(`<<SIM {"texts":"x"}>>`)}, `unknown field "texts"`},
		{"a stall that does not exist", []msg{user(`<<SIM {"stall":"later"}>>`)}, `stall must be`},
		{"a reset that does not exist", []msg{user(`<<SIM {"reset":"body"}>>`)}, `reset must be "headers"`},
		{"a fault that does not exist", []msg{user(`<<SIM {"malformed":"xml"}>>`)}, `malformed must be`},
		{"raw bytes that are no base64", []msg{user(`<<SIM {"rawBase64":"?"}>>`)}, `rawBase64`},
		{"a status that is none", []msg{user(`<<SIM [{},{"then":{"status":99}}]>>`)}, `step 1: status must be between`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := ask(t, srv, tt.messages...)
			if tt.want == "" {
				if r.status != http.StatusOK {
					t.Errorf("status %d: %s", r.status, r.body)
				}
				return
			}
			if message, _ := r.errorOf(t); r.status != http.StatusBadRequest || !strings.Contains(message, tt.want) {
				t.Errorf("status %d, message %q; want 400 with %q", r.status, message, tt.want)
			}
		})
	}
}

func TestABodyThatIsNoStreamingRequestIsRefused(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"hi"}]}`: "set stream to true",
		`{"stream":true,"messages":"hi"}`:               "read messages",
		`nonsense`:                                      "not a JSON object",
	} {
		resp, err := client.Post(srv.BaseURL()+"/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), want) {
			t.Errorf("%s: status %d, %s", body, resp.StatusCode, text)
		}
	}
	if got := srv.Stats().Requests; got != 0 {
		t.Errorf("%d refused requests are counted", got)
	}
}

func TestRequestsAreRememberedInTheirOrder(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	script := scripted(step{Tool: "read"}, step{Text: "done"})
	system := msg{"role": "system", "content": "be brief"}
	ask(t, srv, system, script)
	ask(t, srv, system, script, calling("a"), result("a"))
	ask(t, srv, system, script)
	text, _ := script["content"].(string)
	want := []scriptedmodel.Request{
		{Model: "plain", Messages: 2, Tools: []string{"read"}, User: text, System: "be brief", Turn: 0, Attempt: 1},
		{Model: "plain", Messages: 4, Tools: []string{"read"}, User: text, System: "be brief", Turn: 1, Attempt: 1},
		{Model: "plain", Messages: 2, Tools: []string{"read"}, User: text, System: "be brief", Turn: 0, Attempt: 2},
	}
	got := srv.Requests()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(scriptedmodel.Request{}, "Start", "End")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, r := range got {
		if r.Open() || r.End.Before(r.Start) {
			t.Errorf("request %d from %v to %v", i, r.Start, r.End)
		}
	}
}

func TestTheLogHoldsWhatAStepAsksFor(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	srv, err := scriptedmodel.Start(scriptedmodel.Options{Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	system := msg{"role": "system", "content": "be brief"}
	ask(t, srv, system, scripted(step{LogSystem: true}))
	ask(t, srv, system, scripted(step{LogMessages: true}))
	ask(t, srv, calling("a"))
	if err := srv.Close(); err != nil { // after it the log is ours
		t.Fatal(err)
	}
	var got []string
	for line := range bytes.Lines(log.Bytes()) {
		var e struct {
			Event, System, Reason string
			ID                    int
			Time                  time.Time
			Conversation          []any
		}
		if err := json.Unmarshal(line, &e); err != nil || e.Time.IsZero() {
			t.Fatalf("line %s: %v", line, err)
		}
		got = append(got, fmt.Sprintf("%s %d, system %q, %d messages%s", e.Event, e.ID, e.System, len(e.Conversation), e.Reason))
	}
	want := []string{
		`request 1, system "be brief", 0 messages`,
		`completed 1, system "", 0 messages`,
		`request 2, system "", 2 messages`,
		`completed 2, system "", 0 messages`,
		`refused 0, system "", 0 messages` + `tool call "a" has no tool message that answers it`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAwaitGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := srv.Await(ctx, open(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := srv.Await(ctx, open(0)); err != nil {
		t.Errorf("what is so already needs no waiting: %v", err)
	}
}

func TestOpenRequestsAreCountedAndCutByClose(t *testing.T) {
	t.Parallel()
	srv, err := scriptedmodel.Start(scriptedmodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 3)
	for range cap(ended) {
		req := request(t, t.Context(), srv, scripted(step{Stall: scriptedmodel.StallHeaders}))
		go func() {
			resp, err := client.Do(req)
			if err == nil {
				err = resp.Body.Close()
			}
			ended <- err
		}()
	}
	await(t, srv, open(cap(ended)))
	if diff := cmp.Diff(scriptedmodel.Stats{Requests: 3, Open: 3, MaxOpen: 3}, srv.Stats()); diff != "" {
		t.Errorf("while open (-want +got):\n%s", diff)
	}
	for range 2 { // the second one is a repetition
		if err := srv.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if diff := cmp.Diff(scriptedmodel.Stats{Requests: 3, MaxOpen: 3, Dropped: 3}, srv.Stats()); diff != "" {
		t.Errorf("after close (-want +got):\n%s", diff)
	}
	for range cap(ended) {
		if err := <-ended; !errors.Is(err, io.EOF) {
			t.Errorf("a client ends with %v, want the end of the connection", err)
		}
	}
}

func TestAResetForgetsAllButTheOpenRequests(t *testing.T) {
	t.Parallel()
	resets := map[string]func(*testing.T, *scriptedmodel.Server){
		"by method": func(_ *testing.T, srv *scriptedmodel.Server) { srv.Reset() },
		"over HTTP": func(t *testing.T, srv *scriptedmodel.Server) {
			resp, err := client.Post(strings.TrimSuffix(srv.BaseURL(), "/v1")+"/reset", "", nil)
			if err != nil || resp.StatusCode != http.StatusNoContent {
				t.Fatalf("%v, %v", resp, err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, reset := range resets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, scriptedmodel.Options{})
			failsOnce := scripted(step{Status: 500, Times: 1, Then: &step{Text: "fine"}})
			ask(t, srv, failsOnce)

			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if resp, err := client.Do(request(t, ctx, srv, scripted(step{Stall: scriptedmodel.StallHeaders}))); err == nil {
					_ = resp.Body.Close()
				}
			}()
			await(t, srv, open(1))
			reset(t, srv)
			if diff := cmp.Diff(scriptedmodel.Stats{Requests: 1, Open: 1, MaxOpen: 1}, srv.Stats()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := srv.Requests(); len(got) != 1 || !got[0].Open() {
				t.Errorf("requests left: %+v", got)
			}
			if got := ask(t, srv, failsOnce).status; got != 500 {
				t.Errorf("status %d: the attempt before the reset still counts", got)
			}
			leave()
			<-ended
			await(t, srv, open(0))
			if got := srv.Stats(); got.Open != 0 || got.Aborted != 1 {
				t.Errorf("in the end %+v", got)
			}
		})
	}
}

func TestTheListOfModelsAndTheCountsAreServed(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	ask(t, srv, user("hi"))
	get := func(url string, into any) {
		t.Helper()
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(json.NewDecoder(resp.Body).Decode(into), resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
	}
	var list struct{ Data []struct{ ID string } }
	get(srv.BaseURL()+"/models", &list)
	var ids []string
	for _, m := range list.Data {
		ids = append(ids, m.ID)
	}
	if diff := cmp.Diff([]string{"plain", "think", "small"}, ids); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	var stats scriptedmodel.Stats
	get(strings.TrimSuffix(srv.BaseURL(), "/v1")+"/stats", &stats)
	if diff := cmp.Diff(scriptedmodel.Stats{Requests: 1, MaxOpen: 1, Completed: 1}, stats); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

func TestAServerThatCannotDoItsWorkDoesNotStart(t *testing.T) {
	t.Parallel()
	taken := start(t, scriptedmodel.Options{})
	address := strings.TrimSuffix(strings.TrimPrefix(taken.BaseURL(), "http://"), "/v1")
	for want, opts := range map[string]scriptedmodel.Options{
		"rule 0: error parsing regexp":      {Rules: []scriptedmodel.Rule{{Match: "("}}},
		"rule 1: step 0: malformed must be": {Rules: []scriptedmodel.Rule{{}, {Steps: []step{{Malformed: "xml"}}}}},
		"rule 0: step has no JSON form":     {Rules: []scriptedmodel.Rule{{Steps: []step{{Args: func() {}}}}}},
		"bind: address already in use":      {Addr: address},
	} {
		srv, err := scriptedmodel.Start(opts)
		if err == nil {
			t.Errorf("started, want %q; close: %v", want, srv.Close())
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestALogThatCannotBeWrittenIsReportedByClose(t *testing.T) {
	t.Parallel()
	srv, err := scriptedmodel.Start(scriptedmodel.Options{Log: fullDisk{}})
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, srv, user("hi")).said(); got != "ok" {
		t.Errorf("the request suffers from the log: %q", got)
	}
	if err := srv.Close(); !errors.Is(err, errFull) {
		t.Errorf("close: %v", err)
	}
}
