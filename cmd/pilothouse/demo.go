package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"

	"pilothouse/actors"
	"pilothouse/cmd/pilothouse/demo"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
	"pilothouse/supervisor"
)

func (a *app) demoCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Watch a planning round at work, with a scripted model",
		Long: `demo has a sample plan reviewed by three reviewers and a criticizer, and four
sample references analysed. The children are real pi processes; the model behind
them is a server on this machine whose answers were written beforehand, so it
needs no credentials and no network, and costs nothing.

It works in a directory of its own, which it keeps. Your pi settings and the
current repository are not touched.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.demo(c.Context(), dir)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "work in this `directory`, new or empty (default a new temporary one)")
	return c
}

// demoResult is what `demo --json` prints. Rounds that were not reached are null.
type demoResult struct {
	Workspace  string                  `json:"workspace"`
	Reviews    *supervisor.RoundResult `json:"reviews"`
	Criticism  *supervisor.RoundResult `json:"criticism"`
	References *supervisor.RoundResult `json:"references"`
}

func (a *app) demo(ctx context.Context, dir string) (err error) {
	// Before anything is made: without pi there is nothing to show.
	environ := demoEnviron(os.Environ())
	if _, err := lanes.ParseCommand(cmp.Or(a.pi, "pi"), environ); err != nil {
		return err
	}
	if dir, err = demoDirectory(a.workdir, dir); err != nil {
		return err
	}
	sample, err := demo.Write(ctx, dir, environ)
	if err != nil {
		return err
	}
	rules, err := demo.Rules()
	if err != nil {
		return err
	}
	model, err := scriptedmodel.Start(scriptedmodel.Options{Rules: rules})
	if err != nil {
		return fmt.Errorf("start the scripted model: %w", err)
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	agentDir := filepath.Join(dir, "pi-agent")
	if err := scriptedmodel.AgentDir(agentDir, model.BaseURL()); err != nil {
		return err
	}
	show := &demonstration{
		app: a, sample: sample, started: time.Now(), text: a.out, model: supervisor.ModelAnswer{Answered: true, Selector: "sim/plain"},
		session: supervisor.Session{Workdir: sample.Workspace, Environ: append(environ, "PI_CODING_AGENT_DIR="+agentDir), Pi: a.pi},
	}
	if a.json {
		show.text = a.err // stdout is for the object
	}
	return show.run(ctx)
}

// demoDirectory is dir made absolute and made, or a new temporary directory.
func demoDirectory(workdir, dir string) (string, error) {
	if dir == "" {
		made, err := os.MkdirTemp("", "pilothouse-demo-*")
		if err != nil {
			return "", fmt.Errorf("make a directory for the demo (--dir names another place): %w", err)
		}
		return made, nil
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(workdir, dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", &usageError{fmt.Errorf("--dir: %w", err)}
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil:
		return "", &usageError{fmt.Errorf("--dir: %w", err)}
	case len(entries) > 0:
		return "", &usageError{fmt.Errorf("--dir %s is not empty; name a new directory", dir)}
	}
	return dir, nil
}

// demoEnviron is the environment for the demo's children: the person's, without
// what steers pi or git, leads off this machine or is a secret.
func demoEnviron(environ []string) []string {
	kept := []string{"PI_OFFLINE=1", "PI_TELEMETRY=0", "PI_SKIP_VERSION_CHECK=1"}
	for _, entry := range environ {
		name, _, _ := strings.Cut(strings.ToUpper(entry), "=")
		drop := strings.HasPrefix(name, "PI_") || strings.HasPrefix(name, "GIT_")
		for _, ending := range []string{"_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS", "_PROXY"} {
			drop = drop || strings.HasSuffix(name, ending)
		}
		if !drop {
			kept = append(kept, entry)
		}
	}
	return kept
}

// demonstration is one demo at work.
type demonstration struct {
	*app
	text    io.Writer // what a person reads
	sample  demo.Sample
	session supervisor.Session
	model   supervisor.ModelAnswer
	started time.Time
	result  demoResult
}

// The lines are short enough for a narrow terminal.
const demoIntroduction = `Three reviewers and a criticizer look at a sample plan,
then four sample references are analysed, three at a time.

The children are real pi processes: they start, open files
with their own tools and are watched and recorded as always.
Only the model is not real. A server on this machine gives
answers that were written beforehand, so nothing leaves the
machine and nothing is paid. It takes less than a minute.
`

func (d *demonstration) run(ctx context.Context) error {
	d.result.Workspace = d.sample.Workspace
	d.heading("pilothouse demo")
	fmt.Fprintf(d.text, "%s\nplan         %s\nworkspace    %s\n", demoIntroduction, demo.Plan, d.sample.Workspace)
	err := d.withSystem(func(system *supervisor.System) error { return d.rounds(ctx, system) })
	if d.json {
		err = errors.Join(err, d.printJSON(d.result))
	}
	var status *statusError
	if err != nil && !errors.As(err, &status) {
		return fmt.Errorf("%w; what there is lies in %s", err, d.sample.Workspace)
	}
	d.summary(ctx, exitStatus(err))
	return err
}

// heading prints a line in bold, where the reader's terminal has it.
func (d *demonstration) heading(text string) {
	_, _ = lipgloss.Fprintln(d.text, bold.Render(text)+"\n") // like every line for a person
}

// rounds runs the three rounds, one after the other, up to the first fault.
func (d *demonstration) rounds(ctx context.Context, system *supervisor.System) error {
	plan := supervisor.RefineRequest{Session: d.session, PlanPath: demo.Plan, Model: d.model}
	reviewers, criticizer := plan, plan
	reviewers.Role, reviewers.Reviewers = actors.Reviewer, 3
	criticizer.Role = actors.Criticizer
	refs := supervisor.AnalyzeRequest{Session: d.session, Refs: d.sample.References, Context: demo.Context, Model: d.model}
	for _, round := range []struct {
		title string
		start func(supervisor.Watch) (supervisor.RoundResult, error)
		keep  **supervisor.RoundResult
	}{
		{"1 of 3: three reviewers, each with a lens of its own", func(w supervisor.Watch) (supervisor.RoundResult, error) {
			return system.Refine(ctx, reviewers, w)
		}, &d.result.Reviews},
		{"2 of 3: a criticizer questions the same plan", func(w supervisor.Watch) (supervisor.RoundResult, error) {
			return system.Refine(ctx, criticizer, w)
		}, &d.result.Criticism},
		{"3 of 3: four references, in batches of three", func(w supervisor.Watch) (supervisor.RoundResult, error) {
			return system.AnalyzeRefs(ctx, refs, w)
		}, &d.result.References},
	} {
		fmt.Fprintln(d.text)
		d.heading("── " + round.title)
		view := d.newProgress()
		result, err := round.start(view.Watch)
		view.Close()
		if err != nil {
			return err
		}
		*round.keep = &result
		if !d.json {
			fmt.Fprintln(d.out)
			printRound(d.out, result)
		}
		if err := d.check(ctx, result); err != nil {
			return err
		}
	}
	return nil
}

// check names the lanes that did not do what the script lets them do. In the
// demo, other than in real work, each of them is a failure.
func (d *demonstration) check(ctx context.Context, result supervisor.RoundResult) error {
	if status := interruptStatus(ctx); status != 0 {
		fmt.Fprintln(d.err, "pilothouse: interrupted")
		return &statusError{status}
	}
	faults := demoFaults(result)
	if len(faults) == 0 {
		return nil
	}
	fmt.Fprintf(d.err, "pilothouse: the demo did not go as written: %s\n", strings.Join(faults, ", "))
	return &statusError{exitFailed}
}

// demoFaults is short: why a lane failed stands in the round.
func demoFaults(result supervisor.RoundResult) []string {
	var faults []string
	for _, lane := range result.Lanes {
		switch {
		case lane.Status != lanes.Complete:
			faults = append(faults, fmt.Sprintf("%s %s", lane.LaneID, lane.Status))
		case lane.WellFormed == nil || !*lane.WellFormed:
			faults = append(faults, lane.LaneID+" answered outside the grammar")
		}
	}
	return faults
}

// summary ends the demo: what was done and where to look at it.
func (d *demonstration) summary(ctx context.Context, status int) {
	var complete, all, turns int
	var usage pijson.Usage
	for _, round := range []*supervisor.RoundResult{d.result.Reviews, d.result.Criticism, d.result.References} {
		if round == nil {
			continue
		}
		complete, all = complete+round.Complete(), all+len(round.Lanes)
		for _, lane := range round.Lanes {
			turns, usage = turns+lane.Turns, usage.Plus(lane.Usage)
		}
	}
	title := "done"
	if interruptStatus(ctx) != 0 {
		title = "interrupted"
	} else if status != exitDone {
		title = "failed"
	}
	fmt.Fprintln(d.text)
	d.heading("── " + title)
	for _, line := range []struct{ label, value string }{
		{"lanes", fmt.Sprintf("%d of %d complete, in %s", complete, all, elapsed(time.Since(d.started)))},
		{"model", fmt.Sprintf("%s, %s", count(turns, "answer"), tokens(usage))},
		{"cost", "0, the model is scripted"},
		{"workspace", d.sample.Workspace},
		{"exit status", strconv.Itoa(status)},
	} {
		fmt.Fprintf(d.text, "%-11s  %s\n", line.label, line.value)
	}
	workspace, program := shellWord(d.sample.Workspace), shellWord(os.Args[0])
	fmt.Fprintf(d.text, "\nLook further:\n  %s runs --workdir %s\n  %s show --workdir %s\n\nRemove it:\n  rm -r %s\n",
		program, workspace, program, workspace, shellWord(filepath.Dir(d.sample.Workspace)))
}

// shellWord quotes a word where a shell needs it.
func shellWord(word string) string {
	if quoted, err := syntax.Quote(word, syntax.LangBash); err == nil {
		return quoted
	}
	return word // a NUL byte, which no path has
}
