package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pilothouse/deploy/pi"
	"pilothouse/supervisor"
)

// oldestPi is the first version of Pi, major and minor, whose extensions have all that
// ours uses.
var oldestPi = [2]int{1, 6}

type installOptions struct{ project, uninstall bool }

func (a *app) installCommand() *cobra.Command {
	var o installOptions
	c := &cobra.Command{
		Use:   "install",
		Short: "Put the planning workflow into Pi",
		Long: `install writes the Pi extension of pilothouse to where Pi looks for extensions:
below $PI_CODING_AGENT_DIR (default ~/.pi/agent) for all sessions of this user, or
with --project below .pi of this directory. Running it again brings the extension
to the version of this program. Files that you have changed are set aside, never
overwritten, and --uninstall removes only what install has written.`,
		Example: `  pilothouse install
  pilothouse install --project
  pilothouse install --uninstall`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := a.extensionDir(o.project)
			if err != nil {
				return err
			}
			i := &installation{dir: dir}
			if o.uninstall {
				return a.uninstall(i)
			}
			return a.install(c, i, o.project)
		},
	}
	c.Flags().BoolVar(&o.project, "project", false, "install for this directory alone")
	c.Flags().BoolVar(&o.uninstall, "uninstall", false, "remove the extension")
	return c
}

// extensionDir is where the extension belongs.
func (a *app) extensionDir(project bool) (string, error) {
	if project {
		return filepath.Join(a.workdir, ".pi", "extensions", "pilothouse"), nil
	}
	home, err := os.UserHomeDir()
	agent := os.Getenv("PI_CODING_AGENT_DIR")
	switch {
	case agent == "" && err != nil:
		return "", errors.New("there is no home directory; name Pi's own with PI_CODING_AGENT_DIR, or install with --project")
	case agent == "":
		agent = filepath.Join(home, ".pi", "agent")
	case agent == "~" || strings.HasPrefix(agent, "~/"):
		agent = filepath.Join(home, strings.TrimPrefix(agent, "~"))
	}
	agent, err = filepath.Abs(agent)
	if err != nil {
		return "", fmt.Errorf("find the directory of Pi: %w", err)
	}
	return filepath.Join(agent, "extensions", "pilothouse"), nil
}

// installReport is what install prints with --json.
type installReport struct {
	Dir     string               `json:"dir"`
	Version string               `json:"version,omitempty"`
	Program string               `json:"program,omitempty"`
	Written int                  `json:"written"`
	Removed int                  `json:"removed"`
	Kept    []string             `json:"kept,omitempty"` // files that somebody has changed
	Pi      supervisor.PiFinding `json:"pi,omitzero"`
	// Problem says why Pi would not load the extension.
	Problem string `json:"problem,omitempty"`
}

func (a *app) install(c *cobra.Command, i *installation, project bool) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := i.install(pi.Files(), version, program); err != nil {
		return installError(i.dir, err)
	}
	report := installReport{
		Dir: i.dir, Version: version, Program: program, Written: len(i.written), Removed: len(i.removed), Kept: i.kept,
		Pi: supervisor.FindPi(c.Context(), a.session()),
	}
	report.Problem = cmp.Or(report.Pi.Problem, tooOld(report.Pi.Version), a.twice(project))
	if a.json {
		return a.printJSON(report)
	}
	if report.Written+report.Removed == 0 {
		fmt.Fprintf(a.out, "The extension in %s is that of pilothouse %s already.\n", i.dir, version)
	} else {
		fmt.Fprintf(a.out, "The extension of pilothouse %s is in %s.\n", version, i.dir)
	}
	a.printKept(i)
	switch {
	case report.Problem != "":
		fmt.Fprintf(a.out, "It does not work yet: %s.\n", oneLine(report.Problem))
	case project:
		fmt.Fprintf(a.out, "Next: start pi in %s and trust the project (pi --approve), then type /plan or /plan-normal REQUEST.\n", a.workdir)
	default:
		fmt.Fprintln(a.out, "Next: start pi, or type /reload in a session, then type /plan or /plan-normal REQUEST.")
	}
	return nil
}

func (a *app) uninstall(i *installation) error {
	if err := i.uninstall(); err != nil {
		return installError(i.dir, err)
	}
	if a.json {
		return a.printJSON(installReport{Dir: i.dir, Removed: len(i.removed), Kept: i.kept})
	}
	if len(i.removed)+len(i.kept) == 0 {
		fmt.Fprintf(a.out, "There is no extension of pilothouse in %s.\n", i.dir)
		return nil
	}
	fmt.Fprintf(a.out, "The extension is removed from %s.\n", i.dir)
	a.printKept(i)
	return nil
}

func (a *app) printKept(i *installation) {
	for _, path := range i.kept {
		fmt.Fprintf(a.out, "note: a file that was changed is kept as %s\n", path)
	}
}

func installError(dir string, err error) error {
	if errors.Is(err, errForeign) {
		return fmt.Errorf("%s is not touched: %w; remove the link first", dir, err)
	}
	return err
}

// twice says that the extension is in the other place, too; "" when it is not. Pi would
// load both, and tell the daemon of everything twice.
func (a *app) twice(project bool) string {
	dir, err := a.extensionDir(!project)
	if err != nil {
		return "" // there is no other place
	}
	if _, err := os.Stat(filepath.Join(dir, manifestName)); err != nil {
		return ""
	}
	remove := "pilothouse install --uninstall"
	if !project {
		remove += " --project"
	}
	return fmt.Sprintf("it is in %s, too, and Pi would load both; remove that one with `%s`", dir, remove)
}

// tooOld says why a Pi cannot load the extension, "" when it can or does not tell.
func tooOld(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	numbers := [2]int{}
	for i, text := range []string{major, minor} {
		number, err := strconv.Atoi(text)
		if err != nil {
			return ""
		}
		numbers[i] = number
	}
	if numbers[0] > oldestPi[0] || numbers[0] == oldestPi[0] && numbers[1] >= oldestPi[1] {
		return ""
	}
	return fmt.Sprintf("Pi %s is too old for it, which needs %d.%d; subagents may be of that version, named with PILOTHOUSE_PI", version, oldestPi[0], oldestPi[1])
}
