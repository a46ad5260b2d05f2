package lanes

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestStartsAreSpreadOnlyAfterAFight(t *testing.T) {
	t.Parallel()
	var p Pace
	now := time.Now()
	for range 3 {
		if d := p.delay(now); d != 0 {
			t.Fatalf("a start waits %s although nobody fought", d)
		}
	}
	p.Contended()
	for i, want := range []time.Duration{0, paceGap, 2 * paceGap} {
		if d := p.delay(now); d != want {
			t.Errorf("start %d waits %s, want %s", i+1, d, want)
		}
	}
	if d := p.delay(now.Add(3 * paceGap)); d != 0 {
		t.Errorf("a start after a quiet time waits %s", d)
	}
	if d := p.delay(now.Add(2 * paceTime)); d != 0 {
		t.Errorf("a start long after the fight waits %s", d)
	}
}

func TestAWaitingStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	var p Pace
	p.Contended()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p.next = time.Now().Add(time.Hour)
	p.spread = time.Now().Add(2 * time.Hour)
	if err := p.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
