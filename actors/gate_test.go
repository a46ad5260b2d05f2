package actors_test

import (
	"errors"
	"strings"
	"testing"

	"pilothouse/actors"
)

func TestTheGatesOfARound(t *testing.T) {
	t.Parallel()
	const none = actors.Gate("")
	tests := []struct {
		mode                string
		confirmed, answered bool
		review, analysis    actors.Gate
	}{
		{"", false, false, actors.GateMode, actors.GateMode},
		{"", true, true, actors.GateMode, actors.GateMode},
		{"other", true, true, actors.GateMode, actors.GateMode},
		{actors.ModeDelegated, false, false, actors.GateModel, actors.GateModel},
		{actors.ModeDelegated, true, false, none, none},
		{actors.ModeDelegated, false, true, none, none},
		{actors.ModeCurrentSession, false, false, actors.GateModel, actors.GateCurrentSession},
		{actors.ModeCurrentSession, true, false, none, actors.GateCurrentSession},
		{actors.ModeCurrentSession, false, true, none, actors.GateCurrentSession},
	}
	words := map[actors.Gate][]string{
		actors.GateMode:           {"--mode delegated-subagent|current-session", "ask once"},
		actors.GateModel:          {"--confirmed true", "--modelSelector inherit|provider/model", "--model"},
		actors.GateCurrentSession: {"--mode delegated-subagent"},
	}
	for _, test := range tests {
		s := actors.Setting{Role: actors.Criticizer, Mode: test.mode, Confirmed: test.confirmed}
		for which, got := range map[string]struct {
			err  error
			want actors.Gate
		}{
			"refine":       {s.CheckReview(test.answered), test.review},
			"analyze_refs": {s.CheckAnalysis(test.answered), test.analysis},
		} {
			var gate *actors.GateError
			switch errors.As(got.err, &gate); {
			case got.want == none:
				if got.err != nil {
					t.Errorf("%s of %+v: %v, want no gate", which, test, got.err)
				}
			case gate == nil || gate.Gate != got.want || gate.Role != actors.Criticizer:
				t.Errorf("%s of %+v: %v, want the gate %s", which, test, got.err, got.want)
			default:
				for _, word := range append(words[got.want], "--role criticizer") {
					if !strings.Contains(gate.Error(), word) {
						t.Errorf("the gate %s does not say %q: %s", got.want, word, gate)
					}
				}
			}
		}
	}
}
