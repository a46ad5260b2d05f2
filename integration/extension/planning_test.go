package extension_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// A planning run from the first question to the approval, at a terminal: what is on the
// screen at each step, and what is on disk.
func TestAWholePlanningRunAtATerminal(t *testing.T) {
	t.Parallel()
	reads := scriptedmodel.Step{Text: "I look at the oven.", Tool: "read", Args: map[string]any{"path": "README.md"}}
	s := newScene(t,
		scriptedmodel.Rule{Match: "ask(ing)? what it takes for granted", Steps: []scriptedmodel.Step{reads, {Text: criticismText}}},
		scriptedmodel.Rule{Match: lane, Steps: []scriptedmodel.Step{reads, {Text: findingText}}},
	)
	s.compactsEarly()
	door := s.door()
	p := s.terminal()
	p.asks("What do we sell?", says("Bread, as of now."))
	p.shows("Bread, as of now.")

	// The settings that are missing, the run, and a desk that is cleared for it.
	p.asks("Plan how to bake more bread.",
		plans(map[string]any{"action": "init"}),
		choose("Which language should questions and plans have?", "", "zh-Hans", "*en", "zh-Hant"),
		plans(map[string]any{"action": "set-language", "tag": "en", "languageSource": "user"}),
		choose("Where should planning documents go?", "", "*./docs/pi-plans", "./.git/pi_plans/plans"),
		plans(map[string]any{"action": "set-artifact-root", "artifactRoot": "./docs/pi-plans", "artifactRootSource": "user"}),
		startRun,
		choose("How many loaves a day?", "loaves", "Thirty", "*Forty"),
		writeFile,
		says("I know enough to write it."))
	p.chooses("Which language should questions and plans have?", "2. en  (recommended)")
	p.chooses("Where should planning documents go?", "1. ./docs/pi-plans  (recommended)")
	p.shows("is planning; its documents are in docs/pi-plans/", "Compacted from", "How many loaves a day?") // the turn goes on behind the summary
	p.chooses("How many loaves a day?", "Other…", "2. Forty  (recommended)")
	p.shows("How many loaves a day? — your answer")
	p.types("Forty on weekdays")
	p.keys("Enter")
	p.shows("Blocked `write bread.txt`", "I know enough to write it.")
	if _, err := os.Stat(filepath.Join(s.Dir, "bread.txt")); err == nil {
		t.Error("a file was written while planning")
	}
	run := s.run()
	dir := run.document("run.json").At("artifact_dir").Text()
	if want := filepath.Join(s.Dir, "docs", "pi-plans"); filepath.Dir(dir) != want {
		t.Errorf("the documents go to %s, want below %s", dir, want)
	}

	// The plan, and its review by three, whose model is confirmed first.
	review := refine(map[string]any{"planPath": dir + "/PLAN_v1.md", "reviewers": 3})
	p.asks("Write it and have it reviewed.",
		write(dir+"/PLAN_v1.md", planText),
		review,
		choose("Which model should the reviewer have?", "", "*Inherit the main agent's model", "Choose a model"),
		confirmed("reviewer"),
		review,
		says("They have a finding."))
	p.chooses("Which model should the reviewer have?", "1. Inherit the main agent's model  (recommended)")
	p.shows(overlayTitle, "0/3 done · 3 running", "● ▸ correctness", "● ordering", "● verification")
	p.becomes("shows what three lanes say and do", func(screen string) bool {
		return strings.Count(screen, "I look at the oven.") == 3 && strings.Count(screen, "→ read README.md") == 3
	})
	door.open()
	p.shows("3/3 done", "They have a finding.")
	p.hides(overlayTitle)
	if n := strings.Count(run.reviews(), "Forty is not counted"); n != 3 {
		t.Errorf("%d of 3 answers are on disk:\n%s", n, run.reviews())
	}

	// What they say is taken over, and the criticizer asks the user.
	door.shut()
	const comments = "PLAN_v1_reviewer_comments.md"
	p.asks("Take it over, then go on.",
		write(dir+"/"+comments, "# Accepted\n\nCount them.\n"),
		consolidated(run.round("reviewer"), comments),
		write(dir+"/PLAN_v2.md", secondPlan),
		confirmed("criticizer"),
		refine(map[string]any{"role": "criticizer", "planPath": dir + "/PLAN_v2.md"}),
		says("It has two questions."))
	p.shows("╭─ Criticizer (sim/plain) ─", "0/1 done · 1 running", "● ▸ criticizer")
	door.open()
	p.shows("1/1 done", "It has two questions.")
	p.asks("Ask me.",
		choose("Who buys the bread?", "buyers", "Nobody", "*The village"),
		choose("Is the oven large enough?", "oven", "*Yes", "No"),
		consolidated(run.round("criticizer"), ""),
		choose("What should become of the plan?", "decision", "Accept and execute", "Accept only", "Another round"),
		scriptedmodel.Step{Tool: "execute_plan", Args: map[string]any{}},
		writeFile,
		scriptedmodel.Step{Text: "The bread is baked. [DONE:VC-001] [DONE:VC-002]"},
		says("It is over."))
	p.chooses("Who buys the bread?", "2. The village  (recommended)")
	p.chooses("Is the oven large enough?", "1. Yes  (recommended)")
	screen := p.chooses("What should become of the plan?", "1. Accept and execute")
	if strings.Contains(screen, "Auto-complete") {
		t.Errorf("an execution may be approved by nobody:\n%s", screen)
	}

	// The approval is one of exactly this text.
	plan := s.digest(dir + "/PLAN_v2.md")
	if status := run.document("run.json").At("status").Text(); status != "planning" {
		t.Errorf("before the approval the run is %s", status)
	}
	p.chooses("Let this plan be executed?", "Yes", "PLAN_v2.md", plan, "VC-001", "VC-002")
	p.shows("It is over.")
	if _, err := os.Stat(filepath.Join(s.Dir, "bread.txt")); err != nil {
		t.Errorf("nothing can be written after the approval: %v", err)
	}
	checkpoint := run.document("checkpoint.json")
	if got := checkpoint.At("execution.approval.plan.sha256").Text(); got != plan {
		t.Errorf("the approval is one of %q, want %q", got, plan)
	}
	answers := map[string]string{}
	for _, answered := range checkpoint.At("answeredQuestions").List() {
		answers[answered.At("questionId").Text()] = answered.At("answer").Text() + " by " + answered.At("source").Text()
	}
	for id, want := range map[string]string{
		"loaves": "Forty on weekdays by other", "buyers": "The village by user", "oven": "Yes by user", "decision": "Accept and execute by user",
	} {
		if answers[id] != want {
			t.Errorf("the answer to %s on record is %q, want %q", id, answers[id], want)
		}
	}
	rounds := checkpoint.At("reviewRounds")
	if got, want := rounds.Each("role")+" "+rounds.Each("dispositionArtifact"), "reviewer criticizer "+comments+" "; got != want {
		t.Errorf("the rounds on record are %q, want %q", got, want)
	}
	for _, round := range rounds.List() {
		if !round.At("consolidated").Truth() {
			t.Errorf("a round is not consolidated: %s", round)
		}
	}
	config := piharness.Parse(s.read(filepath.Join(s.Dir, ".git", "pi_plans", "config.json")))
	if tag, root := config.At("language.tag").Text(), config.At("artifact_root_source").Text(); tag != "en" || root != "user" {
		t.Errorf("the settings: %s", config)
	}
	if status := run.document("run.json").At("status").Text(); status != "done" {
		t.Errorf("after its last check the run is %s", status)
	}
}

const findingText = "## Findings\n\n### F-1 Forty is not counted\n\n- Severity: medium\n- Where: I-001\n- Problem: nobody counts.\n- Fix: count.\n\n## Checked\n\n- the oven"

const criticismText = "## Summary\n\nIt takes buyers for granted.\n\n## Questions\n\n1. Who buys the bread?\n   Why: forty loaves are many.\n" +
	"2. Is the oven large enough?\n   Why: it is small.\n"

const secondPlan = "# Bake more bread\n\n## Implementation Items\n- `I-001`: bake forty loaves a day\n- `I-002`: count them\n\n" +
	"## Verifier Checklist\n- [ ] `VC-001` I-001; pass: forty loaves; evidence: the shelf\n- [ ] `VC-002` I-002; pass: a number; evidence: the list\n"

// choose asks with options, the recommended one marked by a star. Only a question with an
// id is one of the run.
func choose(question, id string, options ...string) scriptedmodel.Step {
	var offered []map[string]any
	for _, option := range options {
		label, recommended := strings.CutPrefix(option, "*")
		offered = append(offered, map[string]any{"label": label, "recommended": recommended})
	}
	args := map[string]any{"question": question, "options": offered}
	if id == "decision" {
		args["autoComplete"] = false
	}
	if id != "" {
		args["questionId"] = id
	}
	return scriptedmodel.Step{Tool: "ask_choice", Args: args}
}

func write(path, content string) scriptedmodel.Step {
	return scriptedmodel.Step{Tool: "write", Args: map[string]any{"path": path, "content": content}}
}

func confirmed(role string) scriptedmodel.Step {
	return plans(map[string]any{"action": "set-role", "role": role, "mode": "delegated-subagent", "confirmed": true, "modelSelector": "inherit"})
}

func consolidated(round, artifact string) scriptedmodel.Step {
	step := map[string]any{"transition": "review-consolidated", "roundId": round}
	if artifact != "" {
		step["dispositionArtifact"] = artifact
	}
	return plans(map[string]any{"action": "record-checkpoint", "checkpoint": step})
}

// chooses waits for a question, with words besides it on the screen, and takes the option
// that begins so. It returns the screen with the question.
func (p *terminal) chooses(question, option string, words ...string) string {
	p.t.Helper()
	asked := p.shows(append(words, question, option)...)
	for screen := asked; !strings.Contains(screen, "→ "+option); {
		at := chosen(screen)
		p.keys("Down")
		screen = p.becomes("moves on from "+at, func(screen string) bool { return chosen(screen) != at })
	}
	p.keys("Enter")
	p.hides("→ " + option)
	return asked
}

// chosen is the option of a selector that the arrow points at.
func chosen(screen string) string {
	for line := range strings.Lines(screen) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "→ ") {
			return line
		}
	}
	return ""
}

// compactsEarly has Pi take even a short session for one that can be compacted.
func (s *scene) compactsEarly() {
	s.t.Helper()
	path := filepath.Join(s.AgentDir, "settings.json")
	var settings map[string]any
	if err := json.Unmarshal(s.read(path), &settings); err != nil {
		s.t.Fatal(err)
	}
	settings["compaction"] = map[string]any{"enabled": false, "keepRecentTokens": 50, "reserveTokens": 16384}
	data, err := json.Marshal(settings)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// door stands before the model. Subagents that have used a tool wait at it until it is open.
type door struct {
	mu     sync.Mutex
	opened chan struct{} // closed when it is open
}

func (d *door) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.opened)
}

func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = make(chan struct{})
}

func (d *door) way() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opened
}

// door puts a door that is shut before the model.
func (s *scene) door() *door {
	s.t.Helper()
	models := filepath.Join(s.AgentDir, "models.json")
	model, err := url.Parse(s.Model.BaseURL())
	if err != nil {
		s.t.Fatal(err)
	}
	d := &door{}
	d.shut()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: model.Scheme, Host: model.Host})
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if bytes.Contains(body, []byte(lane)) && bytes.Contains(body, []byte(`"role":"tool"`)) {
			select {
			case <-d.way():
			case <-r.Context().Done():
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	s.t.Cleanup(server.Close)
	text := bytes.ReplaceAll(s.read(models), []byte(model.Scheme+"://"+model.Host), []byte(server.URL))
	if err := os.WriteFile(models, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return d
}

// runFiles are the files of a run.
type runFiles struct {
	*scene
	dir string
}

// run is the only run of the workspace.
func (s *scene) run() runFiles {
	s.t.Helper()
	runs, err := filepath.Glob(filepath.Join(s.Dir, ".git", "pi_plans", "runs", "*"))
	if err != nil || len(runs) != 1 {
		s.t.Fatalf("the runs are %v, %v; want one", runs, err)
	}
	return runFiles{s, runs[0]}
}

func (r runFiles) document(name string) piharness.Value {
	r.t.Helper()
	return piharness.Parse(r.read(filepath.Join(r.dir, name)))
}

// round is the id of the only round of a role.
func (r runFiles) round(role string) string {
	r.t.Helper()
	var ids []string
	for _, round := range r.document("checkpoint.json").At("reviewRounds").List() {
		if round.At("role").Text() == role {
			ids = append(ids, round.At("roundId").Text())
		}
	}
	if len(ids) != 1 {
		r.t.Fatalf("the rounds of the %s are %v, want one", role, ids)
	}
	return ids[0]
}

// reviews is the text of the files that the lanes of all rounds refer to.
func (r runFiles) reviews() string {
	r.t.Helper()
	var all strings.Builder
	for _, round := range r.document("checkpoint.json").At("reviewRounds").List() {
		for _, lane := range round.At("lanes").List() {
			fmt.Fprintf(&all, "%s\n", r.read(filepath.Join(r.dir, filepath.FromSlash(lane.At("resultFile").Text()))))
		}
	}
	return all.String()
}

func (s *scene) read(path string) []byte {
	s.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

// digest is the SHA-256 of a file, in hexadecimal.
func (s *scene) digest(path string) string {
	s.t.Helper()
	sum := sha256.Sum256(s.read(path))
	return hex.EncodeToString(sum[:])
}
