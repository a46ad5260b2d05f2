package daemon_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/supervisor"
)

func TestRealPiWorksForTheDaemon(t *testing.T) {
	t.Parallel()
	pi := piharness.NewPi(t)
	model, err := scriptedmodel.Start(scriptedmodel.Options{Rules: []scriptedmodel.Rule{{
		Match: ".", Steps: []scriptedmodel.Step{{Text: "## Findings\n\nNo findings.\n\n## Checked\n\n- the oven"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	s := newScene(t)
	agentDir := filepath.Join(s.Home, "agent")
	if err := scriptedmodel.AgentDir(agentDir, model.BaseURL()); err != nil {
		t.Fatal(err)
	}
	// The daemon itself knows neither: they are the session's.
	daemon := s.serve()
	s.Env = append(s.Env, "PILOTHOUSE_PI="+pi.String(), "PI_CODING_AGENT_DIR="+agentDir)
	e := s.Must(0, "refine", "plan.md", "--reviewers", "3", "--model", "sim/plain", "--json")
	var result supervisor.RoundResult
	if err := json.Unmarshal([]byte(e.Stdout), &result); err != nil {
		t.Fatal(err)
	}
	if result.Complete() != 3 {
		t.Errorf("result %s", e.Stdout)
	}
	for _, lane := range result.Lanes {
		if lane.Model == nil || *lane.Model != "plain" || lane.Holds == nil || !*lane.Holds || lane.Usage.Input == 0 {
			t.Errorf("lane %+v", lane)
		}
	}
	contains(t, daemon.Stderr.String(), "call ended")
}
