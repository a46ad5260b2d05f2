package supervisor_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"pilothouse/lanes/lanestest"
	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestGuidanceIsGivenWhilePlanModeIsOn(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	if prompt := p.hook("before_agent_start", object{"prompt": "x"}).SystemPrompt; prompt != "" {
		t.Errorf("without plan mode: %q", prompt)
	}
	p.command("plan", "", p.nobody)
	says(t, p.hook("before_agent_start", object{"prompt": "x"}).SystemPrompt, "exit_plan_mode", "heading", "todo list", "only and last tool call")
	p.command("plan", "off", p.nobody)
	if prompt := p.hook("before_agent_start", object{"prompt": "x"}).SystemPrompt; prompt != "" {
		t.Errorf("after plan mode: %q", prompt)
	}
}

func TestOnlyWhatAPersonAsksOfAnAgentAtRestQueuesOneReminderToClarify(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		event  object
		queued bool
	}{
		"typed":          {object{"text": "bake bread", "source": "interactive"}, true},
		"over rpc":       {object{"text": "bake bread", "source": "rpc"}, true},
		"by extension":   {object{"text": "bake bread", "source": "extension"}, false},
		"of no source":   {object{"text": "bake bread"}, false},
		"a command":      {object{"text": " /plan", "source": "interactive"}, false},
		"nothing":        {object{"text": " \n", "source": "interactive"}, false},
		"while it works": {object{"text": "bake bread", "source": "interactive", "streamingBehavior": "steer"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t).pi("s1")
			p.hook("input", test.event)
			p.hook("input", test.event)
			messages := p.hook("before_agent_start", object{}).Messages
			if (len(messages) == 1) != test.queued || len(messages) > 1 {
				t.Fatalf("queued: %+v", messages)
			}
			if test.queued && (messages[0].CustomType != "pi-plans-query-interview" || messages[0].Display) {
				t.Errorf("the reminder is not hidden: %+v", messages[0])
			}
			if again := p.hook("before_agent_start", object{}).Messages; len(again) != 0 {
				t.Errorf("it comes twice: %+v", again)
			}
		})
	}
}

func TestTheReminderIsNotForTheMiddleOfARunAndNotForANewSession(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	ask := func() int {
		p.hook("input", object{"text": "go on", "source": "interactive"})
		return len(p.hook("before_agent_start", object{}).Messages)
	}
	run := p.startRun()
	for status, want := range map[store.RunStatus]int{
		store.StatusPlanning: 0, store.StatusAccepted: 0, store.StatusExecuting: 0, store.StatusStopped: 1, store.StatusDone: 1,
	} {
		p.setStatus(run, status)
		if got := ask(); got != want {
			t.Errorf("%s: %d reminders, want %d", status, got, want)
		}
	}
	p.hook("input", object{"text": "go on", "source": "interactive"})
	p.hook("session_start", object{"reason": "new"})
	if messages := p.hook("before_agent_start", object{}).Messages; len(messages) != 0 {
		t.Errorf("a new session begins with the reminder of another: %+v", messages)
	}
}

func TestASessionComesBackToTheRunOfItsLastEntry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	starter := b.pi("s1")
	one, two := starter.startRunOf("one"), starter.startRunOf("two")
	three := starter.startRunOf("three") // the active one
	entry := func(runID string) object {
		return object{"customType": "pi-plans-run-start", "data": object{"runId": runID}}
	}
	other := object{"customType": "pi-plans-exec", "data": object{"runId": "x"}}
	if err := os.RemoveAll(inDir(starter.root().Dir, "runs", two.RunID)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		entries []object
		want    string // the run whose artifacts may be written
	}{
		"the last":                {[]object{entry(three.RunID), entry(one.RunID), other}, one.RunID},
		"the last that names one": {[]object{entry(one.RunID), entry(""), {"customType": "pi-plans-run-start"}}, one.RunID},
		"none":                    {[]object{}, three.RunID},
		"only others":             {[]object{other}, three.RunID},
		"one that is gone":        {[]object{entry(one.RunID), entry(two.RunID)}, three.RunID},
		"one that is no run":      {[]object{entry("../../x")}, three.RunID},
	} {
		p := b.pi("s2")
		p.hook("session_start", object{"reason": "resume", "entries": []object{entry(one.RunID)}}) // what was before does not count
		p.hook("session_start", object{"reason": "resume", "entries": test.entries})
		for _, run := range []store.Run{one, three} {
			if free := p.writes(inDir(run.ArtifactDir, "PLAN_v1.md")) == ""; free != (run.RunID == test.want) {
				t.Errorf("%s: the artifacts of %s may be written: %v", name, run.RunID, free)
			}
		}
	}
	p := b.pi("s3")
	p.hook("session_start", object{"reason": "resume", "entries": []object{entry(one.RunID)}})
	p.hook("session_start", object{"reason": "reload"})
	if p.writes(inDir(one.ArtifactDir, "PLAN_v1.md")) != "" {
		t.Error("a session that does not tell its entries lost its run")
	}
}

func TestTheStartOfARunIsKeptInTheSession(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	result := object{"toolName": "plans", "toolCallId": "c1", "input": object{"action": "start-run"}}
	if reply := p.hook("tool_result", result); len(reply.Actions) != 0 {
		t.Errorf("no run was started, and there is %+v", reply)
	}
	run := p.startRun()
	for name, event := range map[string]object{
		"a failure":      {"toolName": "plans", "input": object{"action": "start-run"}, "isError": true},
		"another action": {"toolName": "plans", "input": object{"action": "show"}},
	} {
		if reply := p.hook("tool_result", event); len(reply.Actions) != 0 {
			t.Errorf("%s: %+v", name, reply)
		}
	}
	reply := p.hook("tool_result", result)
	if len(reply.Actions) == 0 || reply.Actions[0].CustomType != "pi-plans-run-start" {
		t.Fatalf("no entry: %+v", reply)
	}
	var data struct{ RunID string }
	if err := json.Unmarshal(reply.Actions[0].Data, &data); err != nil || data.RunID != run.RunID {
		t.Errorf("the entry names %q, %v", data.RunID, err)
	}
}

func TestTheRevisionOfTheLatestPlanIsOnRecordOnceItIsWritten(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	run := p.startRun()
	path := func(name string) string { return inDir(run.ArtifactDir, name) }
	put := func(name, text string) {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wrote := func(path string, failed bool) supervisor.Reply {
		return p.hook("tool_result", object{"toolName": "write", "toolCallId": "c1", "input": object{"path": path}, "isError": failed})
	}
	identity := func() *store.PlanIdentity {
		detail, err := p.system.Show(t.Context(), p.Session, run.RunID)
		if err != nil {
			t.Fatal(err)
		}
		return detail.Plan
	}
	put("PLAN_v1.md", "# One\n")
	if wrote(path("PLAN_v1.md"), true); identity() != nil {
		t.Error("a write that failed is on record")
	}
	for _, elsewhere := range []string{path("notes.md"), "main.go", ""} {
		if reply := wrote(elsewhere, false); len(reply.Actions) != 0 || identity() != nil {
			t.Errorf("%q: %+v", elsewhere, reply)
		}
	}
	reply := wrote("@"+path("PLAN_v1.md"), false)
	if diff := cmp.Diff([]string{"entry pi-plans-plan-written"}, kinds(reply)); diff != "" {
		t.Error(diff)
	}
	first := identity()
	if first == nil {
		t.Fatal("the plan is not on record")
	}
	sum, err := store.SHA256File(path("PLAN_v1.md"))
	if err != nil || first.SHA256 != sum {
		t.Errorf("the revision on record is %s, the file has %s, %v", first.SHA256, sum, err)
	}
	put("PLAN_v2.md", "# Two\n") // its first write already makes it the latest
	wrote(path("PLAN_v2.md"), false)
	second := identity()
	if second == nil || second.SHA256 == first.SHA256 {
		t.Errorf("the new version is not on record: %+v", second)
	}
	put("PLAN_v1.md", "# One, late\n")
	wrote(path("PLAN_v1.md"), false)
	if diff := cmp.Diff(second, identity()); diff != "" {
		t.Errorf("an old version took the place of the latest: %s", diff)
	}
}

func TestTheEndOfASessionGivesItsRunBack(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	run := p.startRun()
	owner := inDir(p.root().Dir, "runs", run.RunID, "owner.json")
	if _, err := os.Stat(owner); err != nil {
		t.Fatalf("the session does not hold its run: %v", err)
	}
	p.hook("session_shutdown", object{"reason": "reload"})
	if _, err := os.Stat(owner); err != nil {
		t.Errorf("a reload gave the run back: %v", err)
	}
	p.hook("session_shutdown", object{"reason": "quit"})
	if _, err := os.Stat(owner); !os.IsNotExist(err) {
		t.Errorf("the run is held still: %v", err)
	}
}

func TestPiNeedNotWaitForTheWorkOfASessionThatEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pi("s1")
	w := newWatcher()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := b.plan("PLAN.md", "# A plan\nSTUB-HOLD\n")
	req.Session = p.Session
	done := make(chan error, 1)
	go func() {
		_, err := b.system.Refine(ctx, req, w.watch)
		done <- err
	}()
	<-w.working
	p.hook("session_shutdown", object{"reason": "quit"}) // comes back while the lanes are held
	select {
	case err := <-done:
		t.Errorf("the end of the session ended the round: %v", err)
	default:
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := b.system.EndSession(t.Context(), p.ID); err != nil { // behind the other one
		t.Error(err)
	}
	if owner := b.owner(w.started.RunID); owner != string(store.OwnerNone) {
		t.Errorf("the run is owned by %s", owner)
	}
}

func TestHooksAreCountedAndTraced(t *testing.T) {
	t.Parallel()
	registry, spans := prometheus.NewRegistry(), tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	p := setupWith(t, supervisor.Options{Metrics: registry, Tracer: provider}).pi("s1")
	p.command("plan", "", p.nobody)
	p.runs("git status")
	p.runs("rm x")
	p.runs("rm y")
	p.hook("user_bash", object{"command": "rm z"})
	if _, err := p.system.Hook(t.Context(), p.Session, "input", json.RawMessage(`[]`)); err == nil {
		t.Error("an input of another shape passed")
	}
	value := func(name string, labels ...string) float64 { return lanestest.Value(t, registry, name, labels...) }
	for name, got := range map[string][2]float64{
		"allowed hooks":    {value("pilothouse_hooks_total", `hook="tool_call"`, `outcome="ok"`), 1},
		"blocked hooks":    {value("pilothouse_hooks_total", `hook="tool_call"`, `outcome="blocked"`), 2},
		"their times":      {value("pilothouse_hook_duration_seconds_count", `hook="tool_call"`), 3},
		"refused hooks":    {value("pilothouse_hooks_total", `hook="input"`, `outcome="refused"`), 1},
		"allowed calls":    {value("pilothouse_guard_verdicts_total", `subject="tool"`, `verdict="allow"`), 1},
		"blocked calls":    {value("pilothouse_guard_verdicts_total", `subject="tool"`, `verdict="block"`), 2},
		"blocked commands": {value("pilothouse_guard_verdicts_total", `subject="user_bash"`, `verdict="block"`), 1},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %v, want %v", name, got[0], got[1])
		}
	}
	named := map[string]int{}
	for _, span := range spans.Ended() {
		named[span.Name()]++
	}
	if named["hook tool_call"] != 3 || named["hook user_bash"] != 1 || named["hook input"] != 1 {
		t.Errorf("spans: %v", named)
	}
}
