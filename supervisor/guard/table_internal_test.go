package guard

import (
	"regexp"
	"strings"
	"testing"
)

// every calls f for each entry of the table, with the whole name of one of its names.
func every(f func(name string, e *entry)) {
	var walk func(prefix string, e *entry)
	walk = func(prefix string, e *entry) {
		for name := range strings.FieldsSeq(e.names) {
			f(prefix+name, e)
		}
		for i := range e.subs {
			walk(prefix+strings.Fields(e.names)[0]+" ", &e.subs[i])
		}
	}
	for _, table := range [][]entry{readers, searchers, archivers, systems, developers, wrappers, builtins, changers} {
		for i := range table {
			walk("", &table[i])
		}
	}
	walk("", &git)
}

func TestNoCommandIsInTheTableTwice(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	every(func(name string, _ *entry) {
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
	})
	if len(seen) < 800 {
		t.Errorf("the table knows only %d commands", len(seen))
	}
}

func TestEveryEntryOfTheTableIsWellFormed(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`^(-[A-Za-z0-9.]|--?[A-Za-z0-9][A-Za-z0-9-]+)[:?]?$`)
	every(func(name string, e *entry) {
		lists := e.read + e.write + e.run + e.network
		if (e.effect != reads || e.open) && (lists != "" || e.check != nil || e.subs != nil || e.wraps) {
			t.Errorf("%s: what its options do makes no difference", name)
		}
		if e.effect == reveals && e.why == "" {
			t.Errorf("%s has no reason", name)
		}
		if e.raw && e.check == nil {
			t.Errorf("%s is judged by nothing", name)
		}
		for option := range strings.FieldsSeq(strings.Join([]string{e.read, e.write, e.run, e.network}, " ")) {
			if !word.MatchString(option) {
				t.Errorf("%s: %q is no option", name, option)
			}
		}
		for option := range strings.FieldsSeq(strings.Join([]string{e.need, e.lists}, " ")) {
			if known, ok := e.spec()[option]; !ok || known.effect != reads {
				t.Errorf("%s: %s is needed but does not read", name, option)
			}
		}
	})
}

func TestOptionsOfAllEffectsBlockWhereverTheyStand(t *testing.T) {
	t.Parallel()
	w := &walker{}
	judged := 0
	every(func(name string, e *entry) {
		if e.raw || e.open || e.effect != reads {
			return
		}
		for option, o := range e.spec() {
			if o.effect == reads {
				continue
			}
			spellings := []string{option}
			if o.arity != none {
				spellings = append(spellings, option+"=x")
				if len(option) == 2 {
					spellings = append(spellings, option+"x")
				}
			}
			for _, spelling := range spellings {
				judged++
				if o := w.judge(name, e, []arg{{text: spelling, exact: true}, {text: "x", exact: true}, {text: "y", exact: true}}, 0); o == nil {
					t.Errorf("%s %s is allowed", name, spelling)
				}
			}
		}
	})
	if judged < 300 {
		t.Errorf("only %d options were judged", judged)
	}
}
