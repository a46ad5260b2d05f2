package supervisor_test

import (
	"testing"
)

func TestACopyBeginsInThePlanModeOfThePointItWasMadeAt(t *testing.T) {
	t.Parallel()
	kept := func(active bool, session string) []object {
		return []object{{"customType": "pilothouse-plan-mode", "data": object{"active": active, "session": session}}}
	}
	for name, test := range map[string]struct {
		entries  []object
		planning bool
		told     string
	}{
		"a copy of one in plan mode":             {kept(true, "s0"), true, "still on"},
		"a copy of one that has left plan mode":  {append(kept(true, "s0"), kept(false, "s0")...), false, ""},
		"a copy of one that never was":           {[]object{}, false, ""},
		"the session itself, after its Pi ended": {kept(true, "s1"), false, "ended with the Pi that had it"},
		"an entry that does not tell whose":      {kept(true, ""), false, "ended with the Pi that had it"},
		"an entry that makes no sense":           {[]object{{"customType": "pilothouse-plan-mode", "data": "on"}}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t).pi("s1")
			reply := p.hook("session_start", object{"reason": "fork", "entries": test.entries})
			if p.planning() != test.planning {
				t.Errorf("plan mode holds: %v", !test.planning)
			}
			if told := notices(reply); (told == "") != (test.told == "") {
				t.Errorf("told %q", told)
			} else {
				says(t, told, test.told)
			}
		})
	}
}

func TestACopyHasAPlanModeOfItsOwn(t *testing.T) {
	t.Parallel()
	b, dir := &bundle{t: t, session: newSession(t)}, t.TempDir()
	p := b.daemon(dir).pi("s1")
	start := object{"reason": "fork", "entries": []object{{"customType": "pilothouse-plan-mode", "data": object{"active": true, "session": "s0"}}}}
	p.hook("session_start", start)
	next := b.daemon(dir).pi("s1") // it is durable
	if !next.planning() {
		t.Fatal("plan mode was forgotten by a restart")
	}
	next.command("plan", "off", next.nobody)
	for _, again := range []*pi{next, b.daemon(dir).pi("s1")} {
		if reply := again.hook("session_start", start); again.planning() || notices(reply) != "" {
			t.Errorf("plan mode came back, told %q", notices(reply))
		}
	}
}
