package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pilothouse/supervisor"
)

func TestAWholeSessionFitsIntoTheHookOfItsCompactionOnly(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client, session := s.client(), s.piSession("s1")
	if _, err := client.Plans(t.Context(), session, supervisor.PlansAction{Action: "start-run", Topic: "Bake", Skill: "plan-normal", RequestText: "bake"}); err != nil {
		t.Fatal(err)
	}
	message := func(id, role, content string) map[string]any {
		return map[string]any{"id": id, "type": "message", "message": map[string]any{"role": role, "content": content}}
	}
	event := text(t, map[string]any{"branchEntries": []any{
		message("u1", "user", "Find the slow part"), message("a1", "assistant", strings.Repeat("log ", 2<<20)), message("u2", "user", "and now?"), message("a2", "assistant", "gone"),
	}})
	reply, err := client.Hook(t.Context(), session, "session_before_compact", event)
	if err != nil || reply.Compaction == nil || reply.Compaction.Action != "compaction" {
		t.Fatalf("%+v, %v", reply, err)
	}
	var kept struct{ FirstKeptEntryID string }
	if err := json.Unmarshal(reply.Compaction.Compaction, &kept); err != nil || kept.FirstKeptEntryID != "u2" {
		t.Errorf("%+v, %v", kept, err)
	}
	if _, err := client.Hook(t.Context(), session, "input", event); err == nil || !strings.Contains(err.Error(), "more than 4 MiB") {
		t.Errorf("another hook takes as much: %v", err)
	}
}
