package main

import (
	"fmt"
	"io"

	"pilothouse/lanes"
	"pilothouse/supervisor"
)

// plainProgress prints a line when something changes: for logs and pipes.
type plainProgress struct {
	out   io.Writer
	phase map[string]string // last printed, by lane
}

func (p *plainProgress) Watch(event any) {
	switch m := event.(type) {
	case supervisor.RoundStarted:
		fmt.Fprintln(p.out, headline(m))
		for _, notice := range m.Notices {
			fmt.Fprintln(p.out, "note:", notice)
		}
	case lanes.Progress:
		if p.phase[m.LaneID] != m.Phase {
			p.phase[m.LaneID] = m.Phase
			fmt.Fprintf(p.out, "%-14s %s (%s, %s)\n", m.LaneID, m.Phase, tokens(m.Usage), elapsed(m.Elapsed))
		}
	case supervisor.LaneEnded:
		fmt.Fprintf(p.out, "%-14s %s: %s\n", m.Lane.LaneID, m.Lane.Status, laneSummary(m.Lane))
	}
}

func (*plainProgress) Close() {}
