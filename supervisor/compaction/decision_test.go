package compaction_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/supervisor/compaction"
)

func TestWhatIsNoCompactionHasAReason(t *testing.T) {
	t.Parallel()
	off := object{"overrideDefaultCompaction": false}
	few := []object{user("u-1", "a"), assistant("a-1", "b")}
	for _, test := range []struct {
		name string
		request
		want compaction.Result
	}{
		{"an empty session", request{reason: "manual"}, compaction.Result{Action: "cancel", Reason: "nothing to compact"}},
		{"two messages", request{entries: few}, compaction.Result{Action: "cancel", Reason: "too few messages to compact"}},
		{"an overflow that is retried", request{reason: "overflow", willRetry: true}, compaction.Result{Action: "fallback", Reason: "no_live_messages"}},
		{"an overflow", request{entries: few, reason: "overflow"}, compaction.Result{Action: "fallback", Reason: "too_few_live_messages"}},
		{"a retry", request{entries: few, willRetry: true}, compaction.Result{Action: "fallback", Reason: "too_few_live_messages"}},
		{"an overflow that asks for us", request{entries: few, reason: "overflow", instructions: compaction.ExecutionHint}, compaction.Result{Action: "cancel", Reason: "too few messages to compact"}},
		{"turned off", request{entries: turns(5), settings: off}, compaction.Result{Action: "fallback", Reason: "override-disabled"}},
		{"turned off with instructions", request{entries: turns(5), settings: off, instructions: "keep:1"}, compaction.Result{Action: "fallback", Reason: "override-disabled"}},
	} {
		if diff := cmp.Diff(test.want, test.compact(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	for _, instructions := range []string{"__pi_vcc__", compaction.PlanningHint, compaction.ExecutionHint, compaction.PrePlanHint} {
		request{entries: turns(5), settings: off, instructions: instructions}.compaction(t)
	}
}

func TestInstructionsAreUnderstood(t *testing.T) {
	t.Parallel()
	const most = 1<<53 - 1
	for text, want := range map[string]compaction.Instructions{
		"":                                     {Keep: 1},
		" pi-plans execution auto compact\n":   {Keep: 1, Internal: true},
		"pi-plans planning auto compact":       {Keep: 1, Internal: true},
		"pi-plans planning pre-plan compact":   {Keep: 1, Internal: true},
		"pi-plans planning auto compact now":   {Keep: 1, FollowUp: "pi-plans planning auto compact now"},
		"__pi_vcc__":                           {Keep: 1, VCC: true},
		"__pi_vcc__ keep:3":                    {Keep: 3, VCC: true, Explicit: true},
		"__pi_vcc__ and keep:0 more":           {Keep: 0, VCC: true, Explicit: true},
		"__pi_vcc__x":                          {Keep: 1, FollowUp: "__pi_vcc__x"},
		"keep:2":                               {Keep: 2, Explicit: true},
		"keep:2 Continue with  tests\nplease":  {Keep: 2, Explicit: true, FollowUp: "Continue with  tests\nplease"},
		"Continue with tests keep:2":           {Keep: 2, Explicit: true, FollowUp: "Continue with tests"},
		"keep:2 and keep:3":                    {Keep: 2, Explicit: true, FollowUp: "and keep:3"},
		"Continue keep:2 with tests":           {Keep: 1, FollowUp: "Continue keep:2 with tests"},
		"keep:x keep:-1 keep:":                 {Keep: 1, FollowUp: "keep:x keep:-1 keep:"},
		"keep:9007199254740993":                {Keep: most, Explicit: true},
		"keep:" + strings.Repeat("9", 400):     {Keep: most, Explicit: true},
		"keep:00000000000000000000000000002 x": {Keep: 2, Explicit: true, FollowUp: "x"},
	} {
		if diff := cmp.Diff(want, compaction.ParseInstructions(text)); diff != "" {
			t.Errorf("%.60q (-want +got):\n%s", text, diff)
		}
	}
	got := request{entries: turns(4), instructions: "keep:2 Continue with tests"}.compact(t)
	if got.FollowUp != "Continue with tests" || got.Compaction.FirstKeptEntryID != "u-3" {
		t.Errorf("follow-up %q, kept from %q", got.FollowUp, got.Compaction.FirstKeptEntryID)
	}
}

func TestTheEstimateKnowsOnlyWhatStays(t *testing.T) {
	t.Parallel()
	expensive := func(id, text string) object {
		return message(id, "assistant", []object{textPart(text)}, object{"usage": object{"input": 1_900_000, "output": 1, "totalTokens": 1_900_001}})
	}
	text := strings.Repeat("0123456789", 400)
	got := request{
		entries:      []object{user("u-1", text), expensive("a-1", text), user("u-2", text), expensive("a-2", text)},
		preparation:  object{"tokensBefore": 4000},
		instructions: "keep:1",
	}.compaction(t)
	// 16,000 characters were 4,000 tokens; half of them stay.
	if want := int64(2000 + (len([]rune(got.Summary))+3)/4); got.EstimatedTokensAfter != want {
		t.Errorf("%d tokens, want %d", got.EstimatedTokensAfter, want)
	}
}

func TestFailuresAreSorted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		message string
		aborted bool
		want    compaction.Failure
	}{
		{"Nothing to compact (session too small)", false, compaction.NothingToDo},
		{"Already compacted", true, compaction.NothingToDo},
		{"too few messages to compact", false, compaction.NothingToDo},
		{"Compaction cancelled", false, compaction.Aborted},
		{"Request was aborted.", false, compaction.Aborted},
		{"OpenAI stream ended without a finish reason", false, compaction.Aborted},
		{"Summarization failed: 500", false, compaction.Aborted},
		{"anything", true, compaction.Aborted},
		{"429 rate limit", false, compaction.Retryable},
		{"", false, compaction.Retryable},
	} {
		if got := compaction.ClassifyFailure(test.message, test.aborted); got != test.want {
			t.Errorf("%q, aborted %v: %s, want %s", test.message, test.aborted, got, test.want)
		}
	}
}

func TestOnlyAnOlderPiHasToBeToldToGoOn(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"0.73.1": true, "0.84.3": true, "v0.84.3": true, "0.84.3-beta.1": true, "0.84.4": false, "0.85.0": false, "1.6.0": false, "10.0.0": false,
		"": false, "latest": false, "0.8": false,
	} {
		if got := compaction.NeedsContinue(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestARequestThatCannotBeReadSaysWhy(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"":                        "unexpected end of JSON input",
		"{":                       "unexpected end of JSON input",
		"[]":                      "it is no JSON object",
		`{"branchEntries":{}}`:    "branchEntries is no array",
		`{}`:                      "branchEntries is no array",
		`{"branchEntries":[]} {}`: "after top-level value",
		`{"branchEntries":[],"phase":{"kind":"lunch"}}`: `phase.kind is neither "planning" nor "execution"`,
		`{"branchEntries":[],"phase":"planning"}`:       `phase.kind is neither`,
		strings.Repeat("[", 20_000):                     "exceeded max depth",
	} {
		_, err := compaction.ParseRequest([]byte(data))
		if !errors.Is(err, compaction.ErrRequest) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", data, err, want)
		}
	}
}

func TestWhatHasTheWrongTypeCountsAsAbsent(t *testing.T) {
	t.Parallel()
	r, err := compaction.ParseRequest([]byte(`{"preparation":[1],"branchEntries":[1,null,"x",[],{},{"id":7,"type":"message","message":{"role":"user","content":{"a":1}}}],` +
		`"customInstructions":7,"reason":{},"willRetry":"yes","settings":[true],"phase":null,"more":{"a":[{}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.Instructions != "" || r.Reason != compaction.Manual || r.WillRetry || r.Settings != nil || r.Phase != nil {
		t.Errorf("%+v", r)
	}
	r, err = compaction.ParseRequest([]byte(`{"branchEntries":[],"settings":{"overrideDefaultCompaction":0,"smartKeepTail":false,"debug":true,"novelty":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&compaction.Settings{OverrideDefault: true, Debug: true}, r.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}
