package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"pilothouse/supervisor"
)

func (a *app) compactCommand() *cobra.Command {
	var snapshot string
	command := &cobra.Command{
		Use:   "compact",
		Short: "Compile the summary for one compaction of a Pi session",
		Long: `compact reads a compaction request from standard input, one JSON object

  {"preparation", "branchEntries", "customInstructions", "reason", "willRetry",
   "settings", "phase"}

with the first five as Pi's session_before_compact gives them, and prints

  {"action": "compaction"|"cancel"|"fallback", "reason", "compaction", "followUp"}

It asks no model, and the same request gives the same bytes. Without "settings" those
of the workspace's pi-vcc-config.json hold. A phase is null,
{"kind":"planning","runId","artifactDir","planPath"} or
{"kind":"execution","planPath","currentI","implIds","remainingVcs"}.

Exit status: 0 whatever the action is, 2 when the request cannot be read.`,
		Example: `  pilothouse compact < request.json | jq -r .compaction.summary`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{errors.New("compact reads its request from standard input: pilothouse compact < request.json")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
				return &usageError{errors.New("compact reads its request from standard input: pilothouse compact < request.json")}
			}
			request, err := io.ReadAll(a.in)
			if err != nil {
				return fmt.Errorf("read the request from standard input: %w", err)
			}
			runtime.GC() // what reading left behind is larger than the session
			result, notices, err := supervisor.Compact(c.Context(), a.workdir, snapshot, request)
			if err != nil {
				return &usageError{fmt.Errorf("standard input holds no usable request: %w", err)}
			}
			for _, notice := range notices {
				fmt.Fprintln(a.err, notice)
			}
			if err := a.printJSON(result); err != nil {
				return fmt.Errorf("print the compaction: %w", err)
			}
			return nil
		},
	}
	command.Flags().StringVar(&snapshot, "snapshot", "", "`file` that the setting debug has the compaction described in (default /tmp/pi-vcc-debug.json)")
	return command
}
