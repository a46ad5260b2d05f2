package supervisor

import (
	"testing"

	"pilothouse/lanes/pijson"
	"pilothouse/lanes/rpc"
)

func TestAPlannerIsAnsweredFromTheListAndByNobodyElse(t *testing.T) {
	t.Parallel()
	options := []string{"1. the old one", "2. the new one  (recommended)", "Other…", "Auto-complete"}
	choose := pijson.Dialog{Method: "select", Title: "Which oven?", Options: options}
	for name, test := range map[string]struct {
		answers []PlanAnswer
		dialogs []pijson.Dialog
		want    []rpc.Answer
		asked   string
	}{
		"an option":              {[]PlanAnswer{{"WHICH", "the OLD"}}, []pijson.Dialog{choose}, []rpc.Answer{{Value: options[0]}}, ""},
		"the first that fits":    {[]PlanAnswer{{"oven", "new"}, {"oven", "old"}}, []pijson.Dialog{choose}, []rpc.Answer{{Value: options[1]}}, ""},
		"the user's own words":   {[]PlanAnswer{{"oven", "none at all"}}, []pijson.Dialog{choose, {Method: "input", Title: "Which oven?"}}, []rpc.Answer{{Value: "Other…"}, {Value: "none at all"}}, ""},
		"auto-complete, if said": {[]PlanAnswer{{"oven", "auto-complete"}}, []pijson.Dialog{choose}, []rpc.Answer{{Value: options[3]}}, ""},
		"no answer":              {[]PlanAnswer{{"mill", "old"}}, []pijson.Dialog{choose}, []rpc.Answer{{Open: true}}, "Which oven?"},
		"a confirmation":         {[]PlanAnswer{{"execute", "yes"}}, []pijson.Dialog{{Method: "confirm", Title: "Let it be executed?"}}, []rpc.Answer{{Open: true}}, "Let it be executed?"},
		"an input of its own":    {[]PlanAnswer{{"name", "x"}}, []pijson.Dialog{{Method: "input", Title: "Your name?"}}, []rpc.Answer{{Open: true}}, "Your name?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &planner{answers: test.answers, rested: make(chan struct{}, 1), asked: make(chan OpenQuestion, 1)}
			for i, dialog := range test.dialogs {
				if got := p.answer(dialog); got != test.want[i] {
					t.Errorf("dialog %d got %+v, want %+v", i, got, test.want[i])
				}
			}
			asked := ""
			select {
			case question := <-p.asked:
				asked = question.Title
			default:
			}
			if asked != test.asked {
				t.Errorf("asked %q, want %q", asked, test.asked)
			}
		})
	}
}
