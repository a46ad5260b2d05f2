package main

import (
	"fmt"
	"io"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/supervisor"
)

// plainProgress prints a line when something changes: for logs and pipes.
type plainProgress struct {
	out    io.Writer
	phase  map[string]string // last printed, by lane
	title  map[string]string // by lane, padded to one width
	warned map[string]bool   // by lane
}

func (p *plainProgress) Watch(event any) {
	switch m := event.(type) {
	case supervisor.RoundStarted:
		fmt.Fprintln(p.out, headline(m))
		for _, notice := range m.Notices {
			fmt.Fprintln(p.out, "note:", notice)
		}
		p.name(m.Lanes)
	case lanes.Progress:
		if m.Warning != "" && !p.warned[m.LaneID] {
			p.warned[m.LaneID] = true
			fmt.Fprintf(p.out, "%s  warning: %s\n", p.title[m.LaneID], m.Warning)
		}
		if p.phase[m.LaneID] != m.Phase {
			p.phase[m.LaneID] = m.Phase
			fmt.Fprintf(p.out, "%s  %s (%s, %s)\n", p.title[m.LaneID], m.Phase, tokens(m.Usage), elapsed(m.Elapsed))
		}
	case supervisor.LaneEnded:
		fmt.Fprintf(p.out, "%s  %s: %s\n", p.title[m.Lane.LaneID], m.Lane.Status, laneSummary(m.Lane))
	}
}

func (p *plainProgress) name(planned []actors.Lane) {
	width := 0
	for _, lane := range planned {
		width = max(width, len(laneTitle(lane)))
	}
	for _, lane := range planned {
		p.title[lane.Spec.ID] = fmt.Sprintf("%-*s", width, laneTitle(lane))
	}
}

func (*plainProgress) Close() {}
