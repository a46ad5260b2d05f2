package supervisor

import (
	"testing"

	"pgregory.net/rapid"
)

// reviewing is what the model below knows of an open review or of a request that was not
// submitted yet: only the number of the transition that it belongs to.
type reviewing struct {
	mode     planMode
	at       int
	approves bool
	before   planMode
}

// The model keeps the log of transitions; plan mode is what the last of them says. A
// review or a restore counts only while the log has not grown since.
func TestPlanModeDoesWhatTheLogOfItsTransitionsSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var mode planMode
		type entry struct {
			active   bool
			approved string
		}
		log := []entry{{}}
		var open []reviewing
		last := func() entry { return log[len(log)-1] }
		step := func(next planMode, changed bool) {
			if changed != (next != mode) {
				t.Fatalf("changed %v, but %+v became %+v", changed, mode, next)
			}
			mode = next
		}
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(*rapid.T) {
				before := mode
				step(mode.enter())
				if !last().active {
					log = append(log, entry{true, last().approved})
					open = append(open, reviewing{mode: mode, at: len(log), before: before})
				}
			},
			"leave": func(*rapid.T) {
				step(mode.leave())
				if last().active {
					log = append(log, entry{false, last().approved})
				}
			},
			"begin a review": func(*rapid.T) {
				if mode.Active {
					open = append(open, reviewing{mode: mode, at: len(log), approves: true})
				}
			},
			"end one": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip()
				}
				r := rapid.SampledFrom(open).Draw(t, "which")
				counts := r.at == len(log)
				if r.approves {
					digest := rapid.StringMatching(`[a-f]{4}`).Draw(t, "digest")
					step(mode.approve(r.mode, digest))
					if counts {
						log = append(log, entry{false, digest})
					}
					return
				}
				step(mode.restore(r.before, r.mode))
				if counts {
					log = append(log, entry{r.before.Active, r.before.Approved})
				}
			},
			"": func(t *rapid.T) {
				if mode.Active != last().active || mode.Approved != last().approved {
					t.Fatalf("%+v, the log says %+v", mode, last())
				}
				if mode.Generation != len(log)-1 {
					t.Fatalf("%d transitions counted, there were %d", mode.Generation, len(log)-1)
				}
			},
		})
	})
}

func TestAPlanIsTheSameRevisionWhenTheEditorGaveItBackUntouched(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, shown, edited string
		same                bool
	}{
		{"to the byte", "# Plan\n\n- a", "# Plan\n\n- a", true},
		{"tabs became spaces, as in Pi's editor", "# Plan\n\tmake", "# Plan\n    make", true},
		{"line ends of Windows", "# Plan\r\n- a\r\n- b", "# Plan\n- a\n- b", true},
		{"line ends of old Macs", "# Plan\r- a", "# Plan\n- a", true},
		{"a line break at the end", "# Plan", "# Plan\n", true},
		{"a word more", "# Plan", "# Plan B", false},
		{"blanks inside", "# Plan\n- a", "# Plan\n-  a", false},
		{"another indent", "# Plan\n\tmake", "# Plan\n  make", false},
		{"a line less", "# Plan\n\n- a", "# Plan\n- a", false},
		{"nothing left", "# Plan", "", false},
	} {
		if got := sameRevision(test.shown, test.edited); got != test.same {
			t.Errorf("%s: %v, want %v", test.name, got, test.same)
		}
	}
}

func TestAPlanBeginsWithAHeading(t *testing.T) {
	t.Parallel()
	for plan, fault := range map[string]bool{
		"# Plan": false, "## Plan\ntext": false, "#\tPlan": false, "# P\r\n": false,
		"": true, "#": true, "# ": true, "#Plan": true, "Plan\n# Plan": true, "#\nPlan": true, "- # Plan": true,
	} {
		if got := planFault(plan) != ""; got != fault {
			t.Errorf("%q: fault %v, want %v", plan, got, fault)
		}
	}
}
