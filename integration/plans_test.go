package integration_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/piharness"
)

// plans does one action and returns its result object.
func (w *workspace) plans(args ...string) map[string]any {
	w.t.Helper()
	e := w.must(0, append([]string{"plans"}, args...)...)
	var result map[string]any
	if err := json.Unmarshal([]byte(e.Stdout), &result); err != nil {
		w.t.Fatalf("plans %v printed no object: %v\n%s", args, err, e.Stdout)
	}
	return result
}

func (w *workspace) config() map[string]any {
	w.t.Helper()
	text := piharness.ReadFile(w.t, filepath.Join(w.stateRoot(), "config.json"))
	checkTabs(w.t, "config.json", text)
	var config map[string]any
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		w.t.Fatal(err)
	}
	return config
}

func TestTheSettingsOfAWorkspaceAreShownAndSet(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	if e := w.run("plans", "show"); e.Code != 1 || !strings.Contains(e.Stderr, "no pi-plans state found") || strings.Count(e.Stderr, "\n") != 1 {
		t.Errorf("show without state ended with %d: %s", e.Code, e.Stderr)
	}
	if _, err := os.Stat(w.stateRoot()); !os.IsNotExist(err) {
		t.Errorf("show made the state root: %v", err)
	}

	result := w.plans("init")
	checkKeys(t, "init", result, map[string]string{"config": "object", "stateRoot": "string", "notices": "array", "hint": "string ?"})
	if result["stateRoot"] != w.stateRoot() || result["hint"] == nil {
		t.Errorf("init answered %v", result)
	}
	if diff := cmp.Diff(newConfig(t), piharness.ReadFile(t, filepath.Join(w.stateRoot(), "config.json"))); diff != "" {
		t.Errorf("config.json (-want +got):\n%s", diff)
	}

	stamped := func(group map[string]any, key string) {
		t.Helper()
		if err := timestamp(key, group[key]); err != nil {
			t.Error(err)
		}
		delete(group, key)
	}
	section := func(name string) map[string]any {
		t.Helper()
		group, ok := w.config()[name].(map[string]any)
		if !ok {
			t.Fatalf("config has no %s", name)
		}
		return group
	}
	checkKeys(t, "set-language", w.plans("set-language", "--tag", "de-CH", "--languageSource", "user"), map[string]string{"config": "object", "stateRoot": "string", "notices": "array"})
	language := section("language")
	stamped(language, "updated_at")
	if diff := cmp.Diff(map[string]any{"tag": "de-CH", "source": "user"}, language); diff != "" {
		t.Errorf("language (-want +got):\n%s", diff)
	}

	w.plans("set-role", "--role", "reviewer", "--confirmed", "true", "--modelSelector", "sim/think")
	reviewer := section("reviewer")
	stamped(reviewer, "confirmed_at")
	if diff := cmp.Diff(map[string]any{"mode": "delegated-subagent", "model_selector": "sim/think", "name_prefix": "pi-plans-reviewer"}, reviewer); diff != "" {
		t.Errorf("reviewer (-want +got):\n%s", diff)
	}
	w.plans("--json", `{"action":"set-role","role":"reviewer","mode":"current-session","modelSelector":"inherit"}`)
	if got := section("reviewer"); got["mode"] != "current-session" || got["model_selector"] != nil || got["confirmed_at"] == nil {
		t.Errorf("a change of mode and model leaves %v", got)
	}
	w.plans("set-role", "--role", "reviewer", "--reset-confirmation", "true")
	if got := section("reviewer"); got["confirmed_at"] != nil {
		t.Errorf("a reset leaves %v", got)
	}

	w.plans("set-artifact-root", "--artifactRoot", "./plans", "--artifactRootSource", "user")
	w.plans("set-refs-root", "--refsRoot", ".git/pi-plans/refs", "--refsRootSource", "auto")
	w.plans("set-graph-enabled", "--enabled", "false")
	config := w.config()
	for key, want := range map[string]any{
		"artifact_root": "./plans", "artifact_root_source": "user", "refs_root": ".git/pi-plans/refs", "refs_root_source": "auto", "graph_enabled": false,
	} {
		if config[key] != want {
			t.Errorf("%s is %v, want %v", key, config[key], want)
		}
	}
	for _, key := range []string{"artifact_root_updated_at", "refs_root_updated_at", "graph_enabled_updated_at"} {
		stamped(config, key)
	}
	shown := w.plans("show")
	if diff := cmp.Diff(w.config(), shown["config"]); diff != "" || shown["hint"] != nil {
		t.Errorf("show differs from the file: %s, hint %v", diff, shown["hint"])
	}
}

func TestARunIsStartedAndItsLedgersAreWritten(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.plans("set-language", "--tag", "de", "--languageSource", "user")
	result := w.plans("start-run", "--topic", "Mehr Brot, bitte!", "--skill", "plan-small", "--request-text", "Backe <mehr> & \u2028")
	checkKeys(t, "start-run", result, map[string]string{"run": "object", "notices": "array"})
	run, _ := result["run"].(map[string]any)
	id := w.runs()[0]
	if run["run_id"] != id || run["topic"] != "mehr-brot-bitte" || run["skill"] != "plan-small" || run["request_text"] != "Backe <mehr> & \u2028" || run["language_tag"] != "de" || run["status"] != "planning" {
		t.Errorf("run %v", run)
	}
	if text := piharness.ReadFile(t, w.runFile(id, "run.json")); !strings.Contains(text, "<mehr> &") {
		t.Errorf("run.json escapes what the other program does not:\n%s", text)
	}
	if c := w.checkpoint(id); c.Revision != 1 || c.Generation != 1 || c.Plan != nil {
		t.Errorf("checkpoint %+v", c)
	}
	if _, err := os.Stat(w.runFile(id, "owner.json")); !os.IsNotExist(err) {
		t.Errorf("owner.json: %v", err)
	}

	// The keys of an entry, in their order (spec: state 1.3).
	for _, tt := range []struct {
		ledger, keys string
		args         []string
	}{
		{"decisions.jsonl", "question options answer answerSource recorded_at",
			[]string{"record-decision", "--runId", id, "--decision", `{"question":"Rye?","options":["yes","no"],"answer":"yes","answerSource":"user"}`}},
		{"refs.jsonl", "title url kind retrieval localPath recorded_at",
			[]string{"record-ref", "--runId", id, "--ref", `{"title":"Raft","url":"https://example.org","kind":"repo","retrieval":"clone","localPath":"refs/raft"}`}},
		{"subagents.jsonl", "role name model sessionDir recorded_at",
			[]string{"record-subagent", "--runId", id, "--subagent", `{"role":"reviewer","name":"x","model":"sim/plain","sessionDir":"/s"}`}},
	} {
		entry := w.plans(tt.args...)
		text := piharness.ReadFile(t, w.runFile(id, tt.ledger))
		if got := strings.Join(keysOf(t, text), " "); got != tt.keys {
			t.Errorf("%s: keys %s, want %s", tt.ledger, got, tt.keys)
		}
		if diff := cmp.Diff(w.ledger(id, tt.ledger), []map[string]any{entry}); diff != "" {
			t.Errorf("%s: the result is not the stored entry: %s", tt.ledger, diff)
		}
	}

	if got := w.plans("set-status", "--runId", id, "--status", "stopped"); got["status"] != "stopped" {
		t.Errorf("set-status answered %v", got)
	}
	w.Write("PLAN_v3.md", plan)
	got := w.plans("record-checkpoint", "--checkpoint", `{"transition":"plan-written","planPath":"@PLAN_v3.md"}`)
	if c := w.checkpoint(id); c.Revision != 2 || c.Plan == nil || c.Plan.Version != 3 || got["revision"] != 2.0 {
		t.Errorf("checkpoint %+v, answer %v", c, got)
	}
	w.checkPrivate()
}

func TestActionsWithWrongParametersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.plans("start-run", "--topic", "x", "--skill", "x", "--requestText", "x")
	id := w.runs()[0]
	for name, tt := range map[string]struct {
		code int
		word string
		args []string
	}{
		"set-language without tag":    {2, "tag", []string{"set-language", "--languageSource", "user"}},
		"an empty tag":                {2, "tag", []string{"set-language", "--tag", "", "--languageSource", "user"}},
		"an unknown source":           {2, "languageSource", []string{"set-language", "--tag", "de", "--languageSource", "oracle"}},
		"enabled is no boolean":       {2, "maybe", []string{"set-graph-enabled", "--enabled", "maybe"}},
		"enabled is missing":          {2, "enabled", []string{"set-graph-enabled"}},
		"an unknown mode":             {2, "mode", []string{"set-role", "--role", "reviewer", "--mode", "x"}},
		"confirm and reset":           {2, "resetConfirmation", []string{"set-role", "--role", "reviewer", "--confirmed", "true", "--resetConfirmation", "true"}},
		"start-run without a request": {2, "requestText", []string{"start-run", "--topic", "x", "--skill", "x"}},
		"an unknown status":           {2, "flying", []string{"set-status", "--runId", id, "--status", "flying"}},
		"no such run":                 {2, "run does not exist", []string{"set-status", "--runId", "20200101T000000Z-nothing", "--status", "done"}},
		"a run id that climbs":        {2, "runId", []string{"set-status", "--runId", "../../x", "--status", "done"}},
		"a decision without answer":   {2, "decision", []string{"record-decision", "--runId", id, "--decision", `{"question":"q"}`}},
		"a decision that is no JSON":  {2, "decision", []string{"record-decision", "--runId", id, "--decision", `{`}},
		"an unknown transition":       {2, "approved", []string{"record-checkpoint", "--checkpoint", `{"transition":"approved"}`}},
		"a step out of order":         {3, "implementation", []string{"record-checkpoint", "--checkpoint", `{"transition":"implementation-round-finished"}`}},
		"an unknown parameter":        {2, "colour", []string{"--json", `{"action":"show","colour":"red"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tree(t, w.stateRoot())
			w.run(append([]string{"plans"}, tt.args...)...).checkRefused(t, tt.code, tt.word)
			for _, file := range changed(before, tree(t, w.stateRoot())) {
				if !strings.Contains(file, "/pilothouse") {
					t.Errorf("%s changed", file)
				}
			}
		})
	}
}

// Files of a newer pi-plans have keys that we do not know; they stay, also where
// we write.
func TestWhatANewerProgramWroteSurvives(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, on("Goal:", say(nothingFound)))
	path := w.Write("PLAN.md", plan)
	w.plans("start-run", "--topic", "x", "--skill", "x", "--requestText", "x")
	id := w.runs()[0]
	insert := func(file, before, text string) {
		content := piharness.ReadFile(t, file)
		if !strings.Contains(content, before) {
			t.Fatalf("%s lacks %s", file, before)
		}
		piharness.WriteFile(t, file, strings.Replace(content, before, text+before, 1))
	}
	config := filepath.Join(w.stateRoot(), "config.json")
	insert(config, "\"artifact_root\"", "\"future\": {\n\t\t\"b\": 1.50,\n\t\t\"a\": [1, 2]\n\t},\n\t")
	insert(config, "\"name_prefix\": \"pi-plans-reviewer\"", "\"thinking_level\": \"high\",\n\t\t")
	insert(w.runFile(id, "run.json"), "\"status\"", "\"notices\": [],\n\t")
	insert(w.runFile(id, "checkpoint.json"), "\"reviewRounds\"", "\"pendingQuestions\": [],\n\t")
	piharness.WriteFile(t, w.runFile(id, "decisions.jsonl"), "{\"question\":\"q\",\"answer\":\"a\",\"future\":1}\n{\"cut off")

	w.plans("set-language", "--tag", "de", "--languageSource", "user")
	w.plans("set-status", "--runId", id, "--status", "accepted")
	w.plans("record-decision", "--runId", id, "--decision", `{"question":"Rye?","options":[],"answer":"yes","answerSource":"user"}`)
	w.must(0, "refine", path, "--run", id, "--model", "inherit")

	for file, parts := range map[string][]string{
		config:                           {"\"future\": {\n\t\t\"b\": 1.50,\n\t\t\"a\": [\n\t\t\t1,\n\t\t\t2\n\t\t]\n\t},\n\t\"artifact_root\"", "\"thinking_level\": \"high\",\n\t\t\"name_prefix\"", "\"tag\": \"de\""},
		w.runFile(id, "run.json"):        {"\"notices\": [],\n\t\"status\": \"accepted\""},
		w.runFile(id, "checkpoint.json"): {"\"pendingQuestions\": [],\n\t\"reviewRounds\": [\n", "\"status\": \"complete\""},
		w.runFile(id, "decisions.jsonl"): {"{\"question\":\"q\",\"answer\":\"a\",\"future\":1}\n", "\"answer\":\"yes\""},
	} {
		content := piharness.ReadFile(t, file)
		for _, part := range parts {
			if !strings.Contains(content, part) {
				t.Errorf("%s lacks %q:\n%s", filepath.Base(file), part, content)
			}
		}
	}
	if text := piharness.ReadFile(t, w.runFile(id, "decisions.jsonl")); !strings.HasSuffix(text, "\"}\n") || strings.Contains(text, "cut off{") {
		t.Errorf("the torn line of the ledger was written on:\n%s", text)
	}
}

func TestARoundWithoutAnAnswerToTheModelQuestionIsRefusedAndSaysWhatToAsk(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, on("Goal:", say(nothingFound)))
	path := w.Write("PLAN.md", plan)
	w.run("refine", path).checkRefused(t, 3, "plans set-role --role reviewer --confirmed true")
	if runs := w.runs(); len(runs) != 0 {
		t.Errorf("a refused round started %v", runs)
	}
	w.plans("set-role", "--role", "reviewer", "--confirmed", "true", "--modelSelector", "sim/think")
	w.must(0, "refine", path)
	if got := w.Model.Requests()[0].Model; got != "think" {
		t.Errorf("the lane ran with %s", got)
	}
	w.plans("set-role", "--role", "reviewer", "--mode", "current-session")
	w.run("analyze-refs", "--ref", "a=docs").checkRefused(t, 3, "current-session")
}
