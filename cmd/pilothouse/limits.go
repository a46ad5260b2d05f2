package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"pilothouse/lanes"
)

// addLimits adds the flags that bound each lane of a round.
func addLimits(flags *pflag.FlagSet, limits *lanes.Limits) {
	for _, limit := range []struct {
		name, usage string
		value       *time.Duration
		preset      time.Duration
	}{
		{"lane-timeout", "time for a lane, all its attempts together", &limits.Lane, lanes.DefaultLane},
		{"first-event-timeout", "time for a child's first event", &limits.FirstEvent, lanes.DefaultFirstEvent},
		{"silence-timeout", "longest time without an event", &limits.Silence, lanes.DefaultSilence},
		{"drain-timeout", "time for a child to exit after its answer", &limits.Drain, lanes.DefaultDrain},
	} {
		flags.DurationVar(limit.value, limit.name, limit.preset, limit.usage)
	}
	flags.IntVar(&limits.Attempts, "attempts", lanes.DefaultAttempts, "children that a lane may use one after the other")
	flags.IntVar(&limits.Turns, "max-turns", lanes.DefaultTurns, "assistant messages before a lane is ended")
	flags.Int64Var(&limits.Tokens, "max-tokens", lanes.DefaultTokens, "tokens, cache reads included, before a lane is ended; -1 for no limit")
	flags.Float64Var(&limits.Cost, "max-cost", lanes.DefaultCost, "dollars before a lane is ended; -1 for no limit")
}

// checkLimits refuses limits that no lane could keep.
func checkLimits(limits lanes.Limits) error {
	for name, value := range map[string]time.Duration{
		"lane-timeout": limits.Lane, "first-event-timeout": limits.FirstEvent,
		"silence-timeout": limits.Silence, "drain-timeout": limits.Drain,
	} {
		if value <= 0 {
			return &usageError{fmt.Errorf("--%s %s is not a positive time", name, value)}
		}
	}
	if limits.Attempts < 1 || limits.Turns < 1 {
		return &usageError{fmt.Errorf("--attempts and --max-turns take a number from 1")}
	}
	return nil
}

// maxChildrenVariable bounds the pi children of a process (see `pilothouse --help`).
const maxChildrenVariable = "PILOTHOUSE_MAX_CHILDREN"

// maxChildren is the number in the environment, 0 without one.
func maxChildren() (int, error) {
	text := os.Getenv(maxChildrenVariable)
	if text == "" {
		return 0, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return 0, &usageError{fmt.Errorf("%s %.80q is not a number from 1; correct or unset it", maxChildrenVariable, text)}
	}
	return number, nil
}
