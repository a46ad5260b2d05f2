package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// agreed is a fault that two reviewers report, and one that a third does.
func agreed() []actors.MergedFinding {
	return []actors.MergedFinding{
		{
			Finding: actors.Finding{
				ID: "F-001", Severity: "high", Title: "It leaks", Affects: []string{"I-1", "VC-2"}, Fix: "Close it.",
				Evidence: []actors.Evidence{{Path: "main.go", Line: 3, Raw: "main.go:3"}},
			},
			Agreement: 2, Sources: []actors.FindingSource{{LaneID: "correctness", ID: "F-001"}, {LaneID: "ordering", ID: "F-003"}},
		},
		{Finding: actors.Finding{ID: "F-002", Severity: "low", Title: "A name"}, Agreement: 1, Sources: []actors.FindingSource{{LaneID: "ordering", ID: "F-002"}}},
		{Finding: actors.Finding{ID: "F-004", Title: "Unreadable"}, Agreement: 1, Sources: []actors.FindingSource{{LaneID: "ordering", ID: "F-004"}}},
	}
}

func TestAFaultIsPrintedOnceWithAllWhoReportIt(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printFindings(&out, supervisor.RoundResult{Findings: agreed(), Lanes: []supervisor.LaneResult{{Status: lanes.Complete}}})
	want := "HIGH   correctness/F-001, ordering/F-003  It leaks\n" +
		"       affects:   I-1, VC-2\n" +
		"       evidence:  main.go:3\n" +
		"       fix:       Close it.\n" +
		"LOW    ordering/F-002  A name\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	printFindings(&out, supervisor.RoundResult{Lanes: []supervisor.LaneResult{{Status: lanes.Complete}}})
	if out.String() != "No findings.\n" {
		t.Errorf("without findings: %q", out.String())
	}
}

func TestShowTellsTheFindingsOfEachRound(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{streams: streams{out: &out}}
	a.printRun(supervisor.RunDetail{
		RunInfo:  supervisor.RunInfo{RunID: "r"},
		Rounds:   []store.RoundRecord{{RoundID: "one", Role: "reviewer"}, {RoundID: "two", Role: "reviewer"}},
		Findings: []supervisor.RoundFindings{{RoundID: "two", Findings: agreed()[:2]}},
	})
	want := "run        r\n\nround one (reviewer, inherit)\n\nround two (reviewer, inherit)\n" +
		"HIGH   correctness/F-001, ordering/F-003  It leaks\nLOW    ordering/F-002  A name\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
