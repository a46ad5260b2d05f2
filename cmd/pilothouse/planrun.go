package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pilothouse/deploy/pi"
	"pilothouse/lanes"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

// planFile is what plan-run reads.
type planFile struct {
	Request string                  `json:"request"`
	Skill   string                  `json:"skill"`
	Model   string                  `json:"model"`
	Answers []supervisor.PlanAnswer `json:"answers"`
}

// planSkills are those that a plan can be made by, the default first.
var planSkills = []string{"planning", "plan-small", "plan-normal", "plan-big", "plan-with-refs", "debug-and-plan"}

func (a *app) planRunCommand() *cobra.Command {
	var limit time.Duration
	var resume bool
	c := &cobra.Command{
		Use:   "plan-run FILE",
		Short: "Have a plan made without anybody at the session, for CI",
		Long: `plan-run starts a Pi session with the planning workflow and gives it the request of
FILE. Its questions are answered from FILE; where there is no answer, and where only
a person may decide, as about an execution, it ends, says what has to be decided, and
exits with 3. What was reached by then is kept: add the answer and go on with
--resume. With a plan it exits with 0; "pilothouse execute" is how a person lets
that plan be executed.

FILE is JSON; request is all it needs:

  {"request": "…", "skill": "plan-normal", "model": "provider/model",
   "answers": [{"question": "part of the question", "answer": "part of the option"}]}

An answer that is none of the options is given as the user's own. The first that
fits counts.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{fmt.Errorf("plan-run takes one file, %d were given; see `pilothouse plan-run --help`", len(args))}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			file, err := a.readPlanFile(args[0])
			if err != nil {
				return err
			}
			return a.planRun(c.Context(), file, resume, limit)
		},
	}
	c.Flags().BoolVar(&resume, "resume", false, "go on with the active run instead of a new one")
	c.Flags().DurationVar(&limit, "time-limit", 4*time.Hour, "time for the session")
	return c
}

func (a *app) readPlanFile(path string) (planFile, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.workdir, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return planFile{}, &usageError{err}
	}
	var file planFile
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return planFile{}, &usageError{fmt.Errorf("%s is not what plan-run reads: %w; see `pilothouse plan-run --help`", path, err)}
	}
	if file.Skill == "" {
		file.Skill = planSkills[0]
	}
	switch {
	case strings.TrimSpace(file.Request) == "":
		return planFile{}, &usageError{fmt.Errorf("%s has no request", path)}
	case !slices.Contains(planSkills, file.Skill):
		return planFile{}, &usageError{fmt.Errorf("%s: skill %q is none of %s", path, file.Skill, strings.Join(planSkills, ", "))}
	}
	for i, answer := range file.Answers {
		if answer.Question == "" || answer.Answer == "" {
			return planFile{}, &usageError{fmt.Errorf("%s: answer %d lacks its question or its answer", path, i+1)}
		}
	}
	if _, err := selector(file.Model); err != nil {
		return planFile{}, &usageError{fmt.Errorf("%s: %w", path, err)}
	}
	return file, nil
}

func (a *app) planRun(ctx context.Context, file planFile, resume bool, limit time.Duration) error {
	return a.withDaemon(ctx, func(system *supervisor.System, dir, socket string) error {
		extension := &installation{dir: filepath.Join(dir, "extension")}
		program, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		if err := extension.install(pi.Files(), version, program); err != nil {
			return fmt.Errorf("unpack the extension: %w", err)
		}
		req := supervisor.PlanRequest{
			Session: a.session(), Extension: filepath.Join(extension.dir, "index.ts"), Answers: file.Answers,
			Prompt: fmt.Sprintf("Make a plan for the request below. Read %s first and follow that skill.\n\nRequest:\n%s",
				filepath.Join(extension.dir, "skills", file.Skill, "SKILL.md"), file.Request),
		}
		if resume {
			req.Prompt = "/resume-plans"
		}
		req.Model, req.Limits.Lane, req.Limits.Silence = file.Model, limit, limit
		req.Environ = append(slices.DeleteFunc(req.Environ, func(variable string) bool { return strings.HasPrefix(variable, "PILOTHOUSE_SOCKET=") }),
			"PILOTHOUSE_SOCKET="+socket)
		result, err := system.PlanSession(ctx, req, a.plannerLines())
		if err != nil {
			return err
		}
		return a.planned(ctx, result)
	})
}

// plannerLines tells on stderr which tools a planner uses.
func (a *app) plannerLines() supervisor.Watch {
	phase := ""
	return func(event any) {
		m, ok := event.(lanes.Progress)
		if ok && a.progress != "none" && m.Phase != phase && m.Tool != "" {
			fmt.Fprintf(a.err, "planner  %s (%s, %s)\n", m.Phase, tokens(m.Usage), elapsed(m.Elapsed))
		}
		if ok {
			phase = m.Phase
		}
	}
}

// planned prints what a planner came to and decides the exit status.
func (a *app) planned(ctx context.Context, r supervisor.PlanResult) error {
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else {
		printPlanned(a.out, r)
	}
	switch {
	case r.Question != nil:
		return &refusedError{fmt.Errorf("only a person can answer %q; add the answer to the file and go on with --resume", oneLine(r.Question.Title))}
	case interruptStatus(ctx) != 0:
		return &statusError{interruptStatus(ctx)}
	case r.Reason != "":
		return fmt.Errorf("the plan was not made: %s", oneLine(r.Reason))
	case r.PlanPath == "":
		return errors.New("the session came to rest without a plan; what it said last is in the report")
	}
	return nil
}

func printPlanned(out io.Writer, r supervisor.PlanResult) {
	if r.RunID != "" {
		fmt.Fprintf(out, "run %s\n", r.RunID)
	}
	if r.PlanPath != "" {
		fmt.Fprintf(out, "plan %s\nsha256 %s\n", r.PlanPath, r.PlanSHA256)
	}
	if q := r.Question; q != nil {
		fmt.Fprintf(out, "\nto be decided by a person: %s\n", q.Title)
		if q.Message != "" {
			fmt.Fprintln(out, q.Message)
		}
		for _, option := range q.Options {
			fmt.Fprintf(out, "  %s\n", option)
		}
	} else if r.Text != "" {
		fmt.Fprintf(out, "\n%s\n", r.Text)
	}
	fmt.Fprintf(out, "\n%d turns, %s, $%.2f, %s\n", r.Turns, tokens(r.Usage), r.Usage.Cost, elapsed(time.Duration(r.DurationMs)*time.Millisecond))
}

// withDaemon runs f with an actor system that is served on a socket of its own, in a
// private directory that goes away with it.
func (a *app) withDaemon(ctx context.Context, f func(system *supervisor.System, dir, socket string) error) (err error) {
	dir, err := os.MkdirTemp("", "pilothouse-")
	if err != nil {
		return fmt.Errorf("make a directory for the session: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "api.sock")
	socket, err := api.Listen(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, socket.Release()) }()
	var server *api.Server
	err = a.withSystem(func(system *supervisor.System) (err error) {
		server, err = api.NewServer(api.Options{System: system, Spool: filepath.Join(dir, "calls"), Version: version, Logger: a.logger()})
		if err != nil {
			return errors.Join(err, socket.Close())
		}
		served := make(chan error, 1)
		go func() { served <- server.Serve(socket) }()
		err = f(system, dir, path)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
		defer cancel()
		return errors.Join(err, server.Shutdown(closing, 0), <-served)
	})
	if server != nil {
		server.Wait()
	}
	return err
}
