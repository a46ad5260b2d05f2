package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pilothouse/store"
	"pilothouse/supervisor"
)

func (a *app) doctorCommand() *cobra.Command {
	var release string
	var force bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what is wrong with a workspace or the daemon; free a run that keeps its owner",
		Long: `doctor looks at pi, git, the state of the workspace, the owners of its runs, what
a crash may have left, the daemon of this user and the collector that the
environment names; with --metrics-addr also at who listens there. It changes
nothing, unless --release names a run:
then it takes the run from an owner that is gone, or sets an owner.json aside that
cannot be understood. With --force it also takes the run from an owner that lives or
cannot be judged from here; that one stops as soon as it notices. Every repair is
written down in pilothouse/doctor.jsonl of the state root before it is done.

Exit status: 0 all is well, or the repair is done; 1 something is wrong.`,
		Example: `  pilothouse doctor
  pilothouse doctor --release 20260825T130000Z-cache --force`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if force && release == "" {
				return &usageError{errors.New("--force goes with --release RUN")}
			}
			// Never through a daemon: it may be the patient.
			return a.withSystem(func(system *supervisor.System) error {
				if release != "" {
					repairs, err := system.ReleaseRun(c.Context(), a.session(), release, force)
					if err != nil {
						return releaseFailed(release, force, err)
					}
					return a.printRepairs(release, repairs)
				}
				diagnosis, err := system.Doctor(c.Context(), a.session())
				if err != nil {
					return err
				}
				return a.printReport(newReport(diagnosis, a.examineDaemon(c.Context())))
			})
		},
	}
	c.Flags().StringVar(&release, "release", "", "free this `RUN`")
	c.Flags().BoolVar(&force, "force", false, "take it from an owner that is not proven dead, too")
	return c
}

// releaseFailed adds the way out to a refusal.
func releaseFailed(runID string, force bool, err error) error {
	var owned *store.OwnedError
	if errors.As(err, &owned) && !force {
		return fmt.Errorf("%w; `pilothouse doctor --release %s --force` takes it away all the same", err, runID)
	}
	return fmt.Errorf("release run %s: %w", runID, err)
}

// report is all that the doctor has found. Wrong counts that of the daemon, too.
type report struct {
	supervisor.Diagnosis
	Daemon daemonFinding `json:"daemon"`
}

func newReport(d supervisor.Diagnosis, daemon daemonFinding) report {
	d.Wrong += daemon.problems()
	return report{d, daemon}
}

func (a *app) printReport(r report) error {
	var err error
	if a.json {
		err = a.printJSON(r)
	} else {
		err = writeReport(a.out, r)
	}
	if err == nil && r.Wrong > 0 {
		return &statusError{exitFailed}
	}
	return err
}

// writeReport writes the page for people.
func writeReport(w io.Writer, d report) error {
	line := func(label string, parts ...string) {
		fmt.Fprintf(w, "%-9s %s\n", label, oneLine(strings.Join(parts, "")))
	}
	if d.Pi.Problem != "" {
		line("pi", "! ", d.Pi.Problem)
	} else {
		line("pi", d.Pi.Version, " (", strings.Join(d.Pi.Command, " "), ")")
	}
	line("git", orDash(d.Workspace.Git))
	if d.Workspace.StateRoot != "" {
		line("workspace", d.Workspace.Worktree)
		line("state", d.Workspace.StateRoot)
	}
	switch {
	case d.Workspace.Problem != "" && d.Workspace.StateRoot == "":
		line("workspace", "! ", d.Workspace.Problem)
	case d.Workspace.Problem != "":
		line("config", "! ", d.Workspace.Problem)
	case d.Workspace.Fresh:
		line("config", "none yet; `pilothouse plans init` makes it")
	default:
		line("config", "readable")
	}
	if d.Cgroup.Writable {
		line("cgroup", "each child gets its own")
	} else {
		line("cgroup", "not to be had (", d.Cgroup.Reason, "); children are held by the other nets")
	}
	line("children", childrenLine(d.Children))
	for _, r := range d.Daemon.Remarks {
		mark := ""
		if r.Wrong {
			mark = "! "
		}
		line(r.About, mark, r.Text)
	}
	line("runs", fmt.Sprintf("%d, %d with something to tell", d.Runs, len(d.Findings)))
	if err := writeOwners(w, d.Findings); err != nil {
		return err
	}
	for _, run := range d.Findings {
		writeRemarks(w, run)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", verdict(d.Wrong))
	return err
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func childrenLine(c supervisor.ChildrenFinding) string {
	switch {
	case c.Problem != "":
		return "! " + c.Problem
	case c.Dir == "":
		return "none are noted, because there is no home directory"
	}
	text := fmt.Sprintf("%d at work", c.Alive)
	if c.Left > 0 {
		text += fmt.Sprintf(", %d left by a crash, which the next round ends", c.Left)
	}
	if c.Unclear > 0 {
		text += fmt.Sprintf(", %d that cannot be judged in %s", c.Unclear, c.Dir)
	}
	return text
}

// ownerWords say what can be told of an owner.
var ownerWords = map[store.OwnerState]string{
	store.OwnerAlive:        "at work",
	store.OwnerDead:         "gone; the next command takes the run over",
	store.OwnerElsewhere:    "on another machine",
	store.OwnerUnverifiable: "cannot be seen from here",
}

func writeOwners(w io.Writer, runs []supervisor.RunFinding) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	header := false
	for _, run := range runs {
		if run.Owner == nil {
			continue
		}
		if !header {
			header = true
			fmt.Fprintln(table, "\nRUN\tOWNER\tSESSION\tSINCE\tSTATE")
		}
		o := run.Owner
		fmt.Fprintf(table, "%s\tprocess %d on %s\t%s\t%s\t%s\n", run.RunID, o.PID, o.Host, orDash(o.SessionID), o.Since, ownerWords[o.State])
	}
	return table.Flush()
}

// writeRemarks tells what is wrong with a run, and the way out.
func writeRemarks(w io.Writer, run supervisor.RunFinding) {
	for _, problem := range run.Problems {
		fmt.Fprintf(w, "\n! run %s: %s\n", run.RunID, oneLine(problem))
	}
	release := "`pilothouse doctor --release " + run.RunID
	switch {
	case run.CorruptOwner:
		fmt.Fprintf(w, "  %s` sets its owner.json aside.\n", release)
	case run.Owner != nil && run.Owner.State == store.OwnerUnverifiable:
		fmt.Fprintf(w, "\n! run %s: it cannot be told whether its owner lives.\n  %s --force` takes the run away, if you know that it does not.\n", run.RunID, release)
	case run.Owner != nil && run.Owner.State == store.OwnerElsewhere:
		fmt.Fprintf(w, "\n  run %s: only %s can tell whether its owner lives.\n  %s --force` takes the run away, if you know that it does not.\n", run.RunID, run.Owner.Host, release)
	}
	if run.LeftLock != "" {
		fmt.Fprintf(w, "\n  run %s: a crash has left %s; the next takeover removes it.\n", run.RunID, run.LeftLock)
	}
}

func verdict(wrong int) string {
	switch wrong {
	case 0:
		return "Nothing is wrong."
	case 1:
		return "One thing is wrong."
	default:
		return fmt.Sprintf("%d things are wrong.", wrong)
	}
}

func (a *app) printRepairs(runID string, repairs []store.Repair) error {
	if a.json {
		return a.printJSON(append([]store.Repair{}, repairs...)) // [] when there was nothing to do
	}
	if len(repairs) == 0 {
		_, err := fmt.Fprintf(a.out, "Run %s has no owner; there was nothing to do.\n", runID)
		return err
	}
	for _, repair := range repairs {
		if _, err := fmt.Fprintln(a.out, repairSentence(repair)); err != nil {
			return err
		}
	}
	return nil
}

func repairSentence(r store.Repair) string {
	switch r.Action {
	case store.RepairSetAside:
		return fmt.Sprintf("The owner.json of run %s could not be understood (%s). It is kept as %s; the run is free.", r.RunID, oneLine(r.Problem), r.KeptAs)
	case store.RepairUnlock:
		return fmt.Sprintf("A takeover lock that a crash had left in run %s is removed.", r.RunID)
	}
	who := fmt.Sprintf("process %d on %s", r.Owner.PID, r.Owner.Host)
	if session := r.Owner.Session(); session != "" {
		who = "session " + session + ", " + who
	}
	if r.Forced {
		return fmt.Sprintf("Run %s is taken from its owner (%s), which stops when it notices, if it lives. The run is free.", r.RunID, who)
	}
	return fmt.Sprintf("Run %s is released. Its owner (%s) was gone.", r.RunID, who)
}
