package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"pilothouse/actors"
	"pilothouse/supervisor"
)

func (a *app) analyzeRefsCommand() *cobra.Command {
	var req supervisor.AnalyzeRequest
	var refs []string
	var file, model string
	c := &cobra.Command{
		Use:   "analyze-refs --ref ID=DIR … | --refs FILE.json",
		Short: "Have downloaded references analysed",
		Long: `analyze-refs has each reference analysed by a read-only pi child that works
inside the reference's own directory, three at a time. FILE.json holds a list
of {"id", "localPath", "title", "url", "kind"}; the last three may be left out.

Answers are stored in the active run, or beside the runs when there is none. An
interrupted round is continued with --resume-round: references that have an answer
are not analysed again.`,
		Example: `  pilothouse analyze-refs --ref raft=../refs/raft --ref viewstamp=../refs/vr --model inherit`,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkLimits(req.Limits); err != nil {
				return err
			}
			req.Session = a.session()
			var err error
			if req.Refs, err = a.references(refs, file); err != nil {
				return err
			}
			if req.Model, err = modelAnswer(c, model); err != nil {
				return err
			}
			return a.analyzeRefs(c.Context(), req)
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&refs, "ref", nil, "a reference as `ID=DIR`; may be repeated")
	flags.StringVar(&file, "refs", "", "read references from this JSON `file`")
	addLimits(flags, &req.Limits)
	flags.StringVar(&req.Context, "context", "", "what the target repository is about, for the analysts")
	flags.StringVar(&req.ResumeRoundID, "resume-round", "", "continue the round with this `id`")
	flags.StringVar(&model, "model", "", "answer the model question for this call: inherit or provider/model")
	return c
}

func (a *app) analyzeRefs(ctx context.Context, req supervisor.AnalyzeRequest) error {
	return a.withBackend(ctx, func(b backend) error {
		return a.answeringGates(ctx, b, func() error {
			return a.round(ctx, "pilothouse analyze-refs --resume-round ", func(watch supervisor.Watch) (supervisor.RoundResult, error) {
				return b.AnalyzeRefs(ctx, req, watch)
			})
		})
	})
}

// references reads --refs and --ref, in this order.
func (a *app) references(words []string, file string) ([]actors.Reference, error) {
	var refs []actors.Reference
	if file != "" {
		path := file
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.workdir, path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, &usageError{fmt.Errorf("--refs: %w", err)}
		}
		if err := json.Unmarshal(data, &refs); err != nil {
			return nil, &usageError{fmt.Errorf("--refs %s is not a JSON list of {id, localPath}: %w", file, err)}
		}
	}
	for _, word := range words {
		id, dir, found := strings.Cut(word, "=")
		if !found || id == "" || dir == "" {
			return nil, &usageError{fmt.Errorf("--ref %q is not of the form ID=DIR", word)}
		}
		refs = append(refs, actors.Reference{ID: id, LocalPath: dir})
	}
	return refs, nil
}
