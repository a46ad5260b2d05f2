package integration_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// roundResult is what the tests read of the object that `--json` prints.
type roundResult struct {
	RunID, RoundID, Role, Target string
	Model                        *string
	Lanes                        []laneResult
	Text                         string
}

type laneResult struct {
	LaneID, RefID, Status string
	Lens, Model           *string
	Batch, Attempts       int
	Usage                 struct {
		Input, Output, CacheRead, CacheWrite int
		Cost                                 float64
	}
	Turns, DurationMs int
	Exit              struct {
		Code   *int
		Signal *string
	}
	Error      *struct{ Class, Message string }
	ResultFile *string
	Output     string
	Reused     bool
	WellFormed *bool
	Findings   []struct {
		ID, Severity, Title, Impact, Fix, Disposition string
		Affects                                       []string
	}
	Questions []struct {
		Number    int
		Text, Why string
	}
	Sections map[string]any
}

// round reads the object and checks its shape.
func (e ended) round(t *testing.T) roundResult {
	t.Helper()
	var raw map[string]any
	if err := json.Unmarshal([]byte(e.Stdout), &raw); err != nil {
		t.Fatalf("stdout is not one JSON object: %v\n%s\nstderr:\n%s", err, e.Stdout, e.Stderr)
	}
	checkRoundShape(t, raw)
	var r roundResult
	if err := json.Unmarshal([]byte(e.Stdout), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// lane finds a lane by its id or that of its reference.
func (r roundResult) lane(t *testing.T, id string) laneResult {
	t.Helper()
	for _, lane := range r.Lanes {
		if lane.LaneID == id || lane.RefID == id {
			return lane
		}
	}
	t.Fatalf("there is no lane %q", id)
	return laneResult{}
}

// statuses are the statuses of all lanes by lane id.
func (r roundResult) statuses() map[string]string {
	all := map[string]string{}
	for _, lane := range r.Lanes {
		all[lane.LaneID] = lane.Status
	}
	return all
}

// The objects of `refine --json` and `analyze-refs --json` (design: the command
// line). The value of a key lists the JSON types it may have; a key with "?"
// may be left out.
var (
	roundKeys = map[string]string{
		"runId": "string", "roundId": "string", "role": "string", "model": "string null", "lanes": "array", "text": "string",
		"stored": "string ?", "notices": "array ?",
	}
	laneKeys = map[string]string{
		"laneId": "string", "status": "string", "attempts": "number", "model": "string null", "usage": "object",
		"turns": "number", "durationMs": "number", "exit": "object", "error": "object null", "resultFile": "string null", "transcript": "string null", "output": "string",
		// beyond the contract
		"name": "string", "reused": "bool ?", "notes": "array ?", "stderr": "string ?", "wellFormed": "bool null", "problems": "array ?",
	}
	usageKeys    = map[string]string{"input": "number", "output": "number", "cacheRead": "number", "cacheWrite": "number", "cost": "number"}
	exitKeys     = map[string]string{"code": "number null", "signal": "string null"}
	errorKeys    = map[string]string{"class": "string", "message": "string"}
	findingKeys  = map[string]string{"id": "string", "severity": "string", "title": "string", "affects": "array", "evidence": "array", "impact": "string", "fix": "string", "disposition": "string"}
	questionKeys = map[string]string{"number": "number", "text": "string", "why": "string"}
)

func with(keys map[string]string, more map[string]string) map[string]string {
	all := maps.Clone(keys)
	maps.Copy(all, more)
	return all
}

func checkRoundShape(t *testing.T, round map[string]any) {
	t.Helper()
	analysing := round["role"] == "ref-analyst"
	want := with(roundKeys, map[string]string{"target": "string", "findings": "array ?"})
	lanes := with(laneKeys, map[string]string{"lens": "string ?", "findings": "array ?", "holds": "bool ?", "summary": "string ?", "questions": "array ?"})
	if analysing {
		want = roundKeys
		lanes = with(laneKeys, map[string]string{"refId": "string", "batch": "number", "sections": "object ?"})
	}
	checkKeys(t, "round", round, want)
	merged, _ := round["findings"].([]any)
	for _, finding := range merged {
		checkKeys(t, "finding", finding, with(findingKeys, map[string]string{"agreement": "number", "sources": "array"}))
	}
	list, _ := round["lanes"].([]any)
	for _, item := range list {
		lane := checkKeys(t, "lane", item, lanes)
		checkKeys(t, "usage", lane["usage"], usageKeys)
		checkKeys(t, "exit", lane["exit"], exitKeys)
		complete := lane["status"] == "complete"
		if (lane["error"] == nil) != complete {
			t.Errorf("lane %v is %v and its error is %v", lane["laneId"], lane["status"], lane["error"])
		}
		if !complete {
			checkKeys(t, "error", lane["error"], errorKeys)
		}
		if complete != (lane["resultFile"] != nil) {
			t.Errorf("lane %v is %v and its result file is %v", lane["laneId"], lane["status"], lane["resultFile"])
		}
		for key, keys := range map[string]map[string]string{"findings": findingKeys, "questions": questionKeys} {
			entries, _ := lane[key].([]any)
			for _, entry := range entries {
				checkKeys(t, key, entry, keys)
			}
		}
	}
}

// checkKeys checks that a value is an object with just these keys and types.
func checkKeys(t *testing.T, what string, value any, want map[string]string) map[string]any {
	t.Helper()
	got, ok := value.(map[string]any)
	if !ok {
		t.Fatalf("%s is %T, not an object", what, value)
	}
	for key, v := range got {
		if types, known := want[key]; !known {
			t.Errorf("%s has the key %q that nothing announces", what, key)
		} else if !slices.Contains(strings.Fields(types), jsonType(v)) {
			t.Errorf("%s.%s is %s, want %s", what, key, jsonType(v), types)
		}
	}
	for key, types := range want {
		if _, there := got[key]; !there && !strings.Contains(types, "?") {
			t.Errorf("%s lacks the key %q", what, key)
		}
	}
	return got
}

func jsonType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}
