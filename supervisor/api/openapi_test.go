package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

// document is as much of OpenAPI as the tests need.
type document struct {
	OpenAPI    string                          `json:"openapi"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	Responses map[string]struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"responses"`
	RequestBody struct {
		Content map[string]struct {
			Schema schema `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

type schema struct {
	Ref                  string            `json:"$ref"`
	Type                 any               `json:"type"` // a name or several
	Properties           map[string]schema `json:"properties"`
	Required             []string          `json:"required"`
	AdditionalProperties *bool             `json:"additionalProperties"`
	Items                *schema           `json:"items"`
	Enum                 []string          `json:"enum"`
}

func (s *scene) document() document {
	s.t.Helper()
	var d document
	if status := s.ask("GET", "/v1/openapi.json", nil, &d); status != http.StatusOK || !strings.HasPrefix(d.OpenAPI, "3.1") {
		s.t.Fatalf("status %d, OpenAPI %s", status, d.OpenAPI)
	}
	return d
}

// check returns what of a value breaks a schema.
func (d document) check(s schema, value any, at string) []string {
	if name, found := strings.CutPrefix(s.Ref, "#/components/schemas/"); found {
		target, known := d.Components.Schemas[name]
		if !known {
			return []string{at + ": there is no schema " + name}
		}
		return d.check(target, value, at)
	}
	var kinds []string
	switch t := s.Type.(type) {
	case string:
		kinds = []string{t}
	case []any:
		for _, kind := range t {
			kinds = append(kinds, fmt.Sprint(kind))
		}
	}
	var wrong []string
	kind := kindOf(value)
	if !slices.Contains(kinds, kind) && (kind != "integer" || !slices.Contains(kinds, "number")) {
		return []string{fmt.Sprintf("%s is a %s, not a %v", at, kind, kinds)}
	}
	switch v := value.(type) {
	case string:
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
			wrong = append(wrong, fmt.Sprintf("%s is %q, not one of %v", at, v, s.Enum))
		}
	case []any:
		for i, item := range v {
			if s.Items != nil {
				wrong = append(wrong, d.check(*s.Items, item, fmt.Sprintf("%s[%d]", at, i))...)
			}
		}
	case map[string]any:
		for _, key := range s.Required {
			if _, there := v[key]; !there {
				wrong = append(wrong, at+" lacks "+key)
			}
		}
		for key, item := range v {
			property, known := s.Properties[key]
			switch {
			case known:
				wrong = append(wrong, d.check(property, item, at+"."+key)...)
			case s.AdditionalProperties != nil && !*s.AdditionalProperties:
				wrong = append(wrong, at+" has the unknown key "+key)
			}
		}
	}
	return wrong
}

func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
	}
	return "number"
}

func TestTheDescriptionHasTheRoutesAndNoOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var described []string
	for path, operations := range s.document().Paths {
		for method := range operations {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(described)
	routes := s.server.Routes()
	slices.Sort(routes)
	if !slices.Equal(described, routes) {
		t.Errorf("described:\n%s\nserved:\n%s", strings.Join(described, "\n"), strings.Join(routes, "\n"))
	}
}

// Every endpoint is asked for real, in several states, and what it says is held
// against the description.
func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	d := s.document()
	seen := map[string]bool{}
	check := func(method, route string, response answer, lines bool) {
		t.Helper()
		seen[method+" "+route] = true
		described := d.Paths[route][strings.ToLower(method)]
		promised, known := described.Responses[fmt.Sprint(response.status)]
		if !known {
			promised, known = described.Responses["default"], response.status >= 400
		}
		content, fits := promised.Content[response.media]
		if !known || !fits {
			t.Errorf("%s %s: status %d with %s is not described", method, route, response.status, response.media)
			return
		}
		data, err := io.ReadAll(response.body)
		if err != nil {
			t.Fatal(err)
		}
		texts := []string{string(data)}
		if lines {
			texts = slices.Collect(strings.Lines(string(data)))
		}
		for _, text := range texts {
			var value any
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				t.Fatalf("%s %s answers %q", method, route, text)
			}
			for _, wrong := range d.check(content.Schema, value, method+" "+route) {
				t.Error(wrong)
			}
		}
	}
	get := func(route, path string) { t.Helper(); check("GET", route, s.request("GET", path, nil), false) }

	session, open := s.gated()
	session.ID = "s1"
	watcher := s.watch()
	call := post("c1", session)
	for _, wrong := range d.check(d.Paths["/v1/calls"]["post"].RequestBody.Content["application/json"].Schema, generic(t, call), "the request") {
		t.Error(wrong)
	}
	stream := s.follow("POST", "/v1/calls", call)
	stream.until("progress", func(e api.Event) bool { return e.Progress != nil && e.Progress.Phase == "responding" })
	for _, path := range []string{"/v1/health", "/v1/lanes", "/v1/calls", "/v1/openapi.json"} {
		get(path, path)
	}
	get("/v1/calls/{call}", "/v1/calls/c1")
	check("DELETE", "/v1/calls/{call}/lanes/{lane}", s.request("DELETE", "/v1/calls/c1/lanes/nobody", nil), false)
	check("DELETE", "/v1/calls/{call}/lanes/{lane}", s.request("DELETE", "/v1/calls/c1/lanes/verification", nil), false)
	check("POST", "/v1/calls/{call}/ack", s.request("POST", "/v1/calls/c1/ack", nil), false) // too early
	open()
	stream.until("a result", typed(api.EventResult))
	get("/v1/lanes", "/v1/lanes?ended=1")
	check("POST", "/v1/calls", s.request("POST", "/v1/calls", call), true)
	check("GET", "/v1/calls/{call}/events", s.request("GET", "/v1/calls/c1/events", nil), true)
	get("/v1/calls/{call}", "/v1/calls/c1")
	check("DELETE", "/v1/calls/{call}", s.request("DELETE", "/v1/calls/c1", nil), false)
	check("GET", "/v1/lanes/{call}/{lane}/transcript", s.request("GET", "/v1/lanes/c1/ordering/transcript", nil), true)
	get("/v1/runs", "/v1/runs?workdir="+session.Workdir)
	get("/v1/runs/{run}", "/v1/runs/active?workdir="+session.Workdir)
	get("/v1/runs/{run}", "/v1/runs/none?workdir="+session.Workdir)
	s.checkSessionSide(d, session, check)
	check("DELETE", "/v1/sessions/{session}", s.request("DELETE", "/v1/sessions/s1", nil), false)
	check("POST", "/v1/calls/{call}/ack", s.request("POST", "/v1/calls/c1/ack", nil), false)
	check("POST", "/v1/calls/{call}/ack", s.request("POST", "/v1/calls/c1/ack", nil), false)
	check("GET", "/v1/calls/{call}/events", s.request("GET", "/v1/calls/c1/events", nil), true)
	get("/v1/calls/{call}", "/v1/calls/c1")
	for _, name := range []string{"accepted", "started", "progress", "lane", "result"} {
		var value any
		if err := json.Unmarshal([]byte(watcher.until(name)), &value); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range d.check(d.Paths["/v1/events"]["get"].Responses["200"].Content["text/event-stream"].Schema, value, "GET /v1/events "+name) {
			t.Error(wrong)
		}
	}
	seen["GET /v1/events"] = true
	check("POST", "/v1/stop", s.request("POST", "/v1/stop", nil), false)
	<-s.server.StopAsked()
	for _, route := range s.server.Routes() {
		if !seen[route] {
			t.Errorf("%s was not tried", route)
		}
	}
	for name := range maps.Keys(d.Components.Schemas) {
		if !strings.Contains(spell(t, d), "schemas/"+name) && !slices.Contains([]string{"RefineParams", "AnalyzeParams"}, name) {
			t.Errorf("nothing refers to the schema %s", name)
		}
	}
}

// checkSessionSide asks what a Pi session does: hooks, and a conversation from its first
// dialog to its result.
func (s *scene) checkSessionSide(d document, session supervisor.Session, check func(method, route string, response answer, lines bool)) {
	s.t.Helper()
	who := map[string]any{"id": session.ID, "workdir": session.Workdir}
	post := func(route, path string, body any) supervisor.Reply {
		s.t.Helper()
		for _, wrong := range d.check(d.Paths[route]["post"].RequestBody.Content["application/json"].Schema, generic(s.t, body), "the request to "+route) {
			s.t.Error(wrong)
		}
		response := s.request("POST", path, body)
		data, err := io.ReadAll(response.body)
		if err != nil {
			s.t.Fatal(err)
		}
		response.body = io.NopCloser(bytes.NewReader(data))
		check("POST", route, response, false)
		var reply supervisor.Reply
		if err := json.Unmarshal(data, &reply); err != nil {
			s.t.Fatal(err)
		}
		return reply
	}
	converse := func(kind, name string, args any) supervisor.Reply {
		s.t.Helper()
		return post("/v1/conversations", "/v1/conversations", map[string]any{
			"session": who, "kind": kind, "name": name, "args": args,
			"ui": map[string]any{"has": true, "mode": "tui", "editor": true, "rows": 40, "cols": 120, "idle": false, "models": []string{"a/b"}},
		})
	}
	answer := func(dialog *supervisor.Dialog, given map[string]any) supervisor.Reply {
		s.t.Helper()
		if dialog == nil {
			s.t.Fatal("there is no dialog to answer")
		}
		given["step"] = dialog.Step
		return post("/v1/conversations/{conversation}/answer", "/v1/conversations/"+dialog.Conversation+"/answer", map[string]any{"session": session.ID, "answer": given})
	}
	reply := converse("command", "plan", "go on")
	reply = answer(reply.Dialog, map[string]any{})
	reply = converse("tool", "exit_plan_mode", map[string]any{"plan": "# Plan"})
	answer(reply.Dialog, map[string]any{}) // a problem
	reply = answer(reply.Dialog, map[string]any{"text": reply.Dialog.Text})
	for _, hook := range []string{"before_agent_start", "tool_call", "coffee"} { // the last is a problem
		post("/v1/hooks/{hook}", "/v1/hooks/"+hook, map[string]any{
			"session": who, "ui": map[string]any{}, "event": map[string]any{"toolName": "write", "input": map[string]any{"path": "x"}, "new": true},
		})
	}
	answer(reply.Dialog, map[string]any{"index": 0})
	answer(reply.Dialog, map[string]any{"index": 0}) // a problem: it is over
	reply = converse("tool", "exit_plan_mode", map[string]any{"plan": "# Plan"})
	reply = converse("command", "plan", "go on")
	check("DELETE", "/v1/conversations/{conversation}", s.request("DELETE", "/v1/conversations/"+reply.Dialog.Conversation, nil), false)
	check("DELETE", "/v1/conversations/{conversation}", s.request("DELETE", "/v1/conversations/"+reply.Dialog.Conversation, nil), false)
}

func generic(t *testing.T, value any) any {
	t.Helper()
	var read any
	if err := json.Unmarshal([]byte(spell(t, value)), &read); err != nil {
		t.Fatal(err)
	}
	return read
}
