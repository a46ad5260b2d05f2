package scriptedmodel

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryFieldOfAStepSurvivesTheNotation(t *testing.T) {
	t.Parallel()
	// As the protocol's users write it, with every key there is.
	message := `Task <<SIM [{"text":"t","chunks":1,"textBytes":2,"unit":"u","thinking":"th","thinkingChunks":3,
		"beforeMs":4,"delayMs":5,"tool":"read","args":{"path":"a"},"tools":[{"name":"ls","args":"{"}],"argChunks":6,
		"finish":"length","usage":{"prompt_tokens":7},"cached":8,"noUsage":true,"noDone":true,"noFinish":true,
		"responseModel":"m","status":429,"retryAfter":9,"message":"me","code":"co","body":"bo","headers":{"X":"y"},
		"times":10,"then":{"text":"after"},"stall":11,"reset":"headers","dropAfter":12,"endAfter":13,
		"malformed":"html","rawBase64":"AA==","splitBytes":14,"logSystem":true,"logMessages":true},
		{"stall":"headers"},{"stall":true},{"stall":false}]>>`
	want := []Step{{
		Text: "t", Chunks: 1, TextBytes: 2, Unit: "u", Thinking: "th", ThinkingChunks: 3, BeforeMs: 4, DelayMs: 5,
		Tool: "read", Args: map[string]any{"path": "a"}, Tools: []ToolCall{{"ls", "{"}}, ArgChunks: 6,
		Finish: "length", Usage: map[string]any{"prompt_tokens": json.Number("7")}, Cached: 8,
		NoUsage: true, NoDone: true, NoFinish: true, ResponseModel: "m",
		Status: 429, RetryAfter: json.Number("9"), Message: "me", Code: "co", Body: "bo", Headers: map[string]string{"X": "y"},
		Times: 10, Then: &Step{Text: "after"}, Stall: 11, Reset: "headers", DropAfter: 12, EndAfter: 13,
		Malformed: "html", RawBase64: "AA==", SplitBytes: 14, LogSystem: true, LogMessages: true,
	}, {Stall: StallHeaders}, {Stall: StallStart}, {}}
	got, err := parseScript(message)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	again, err := parseScript(Script(got...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("written and read again (-want +got):\n%s", diff)
	}
}

func FuzzAScriptThatCanBeReadCanBeWrittenAndReadAgain(f *testing.F) {
	f.Add(`<<SIM [{"text":"a >> b"}]>>`)
	f.Add(`x <<SIM {"stall":true,"then":{"args":[1e400,null]}} >> y`)
	f.Add("<<SIM \n[]>>")
	f.Add("<<SIM >>")
	f.Fuzz(func(t *testing.T, message string) {
		steps, err := parseScript(message)
		if err != nil {
			return
		}
		again, err := parseScript(Script(steps...))
		if err != nil {
			t.Fatalf("%+v: %v", steps, err)
		}
		if len(steps) != len(again) {
			t.Fatalf("%d steps became %d", len(steps), len(again))
		}
	})
}
