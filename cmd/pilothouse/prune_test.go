package main

import (
	"testing"
	"time"
)

func TestAnAgeIsAWholeNumberOfHoursDaysOrWeeks(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{"30d": 30 * day, "12w": 84 * day, "36h": 36 * time.Hour, "0d": 0, "4294967295h": 0} {
		got, err := parseAge(text)
		if text == "4294967295h" { // more than there is room for
			if err == nil {
				t.Errorf("%s: got %v", text, got)
			}
			continue
		}
		if got != want || err != nil {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "30", "-1d", "1.5d", "30 days", "30m", "h30", "99999999999999999999d"} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}
