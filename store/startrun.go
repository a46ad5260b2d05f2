package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// StartRunRequest asks for a new run. All three are required.
type StartRunRequest struct {
	Topic       string
	Skill       string
	RequestText string
}

var ledgerNames = []string{"decisions.jsonl", "subagents.jsonl", "refs.jsonl"}

// StartRun creates a run, its artifact directory and the pointer to the active run.
// The notices are sentences to show to the user. The checkpoint is created by
// [RunDir.CreateCheckpoint], the owner by [RunDir.Acquire]. When it fails no run is
// left. Errors: ErrNoState, *CorruptError for config.json (spec: state 1.4).
func StartRun(root Root, request StartRunRequest, now time.Time) (Run, []string, error) {
	config, err := root.LoadConfig()
	if err != nil {
		return Run{}, nil, err
	}
	slug := Slug(request.Topic)
	artifactDir, err := root.artifactDir(config.ArtifactRoot, now.UTC().Format("2006-01-02")+"-"+slug)
	if err != nil {
		return Run{}, nil, err
	}
	var notices []string
	if _, err := os.Stat(artifactDir); err == nil {
		notices = append(notices, fmt.Sprintf("the artifact directory %s exists already and is shared with an earlier run", artifactDir))
	}
	dir, err := root.claimRunDir(now.UTC().Format("20060102T150405Z") + "-" + slug)
	if err != nil {
		return Run{}, nil, fmt.Errorf("create run: %w", err)
	}
	run := Run{
		Schema: 1, RunID: dir.ID, Skill: request.Skill, Topic: slug, RequestText: request.RequestText,
		Workdir: root.Workdir, ArtifactDir: artifactDir, LanguageTag: config.Language.Tag,
		Status: StatusPlanning, CreatedAt: Stamp(now), UpdatedAt: Stamp(now),
	}
	if err := errors.Join(makeDirectory(artifactDir, 0o755), dir.fill(run)); err != nil {
		return Run{}, nil, fmt.Errorf("create run %s: %w", dir.ID, errors.Join(err, os.RemoveAll(dir.Dir)))
	}
	return run, notices, nil
}

// claimRunDir makes the directory of a new run. Making a directory is atomic, so of
// two starts in one second each gets its own.
func (r Root) claimRunDir(id string) (RunDir, error) {
	runs := filepath.Join(r.Dir, "runs")
	if err := makeBelow(r.Dir, runs, privateDir); err != nil {
		return RunDir{}, err
	}
	for n := 1; ; n++ {
		dir := RunDir{Root: r, ID: id}
		if n > 1 {
			dir.ID = fmt.Sprintf("%s-%d", id, n)
		}
		dir.Dir = filepath.Join(runs, dir.ID)
		err := os.Mkdir(dir.Dir, privateDir)
		if err == nil {
			return dir, syncDirectory(runs)
		}
		if !errors.Is(err, fs.ErrExist) {
			return RunDir{}, err
		}
	}
}

// fill writes run.json last: a run without it was never started.
func (d RunDir) fill(run Run) error {
	for _, name := range ledgerNames {
		if err := CreateFile(d.path(name), nil); err != nil {
			return err
		}
	}
	record, err := encodeDocument(run)
	if err != nil {
		return err
	}
	if err := CreateFile(d.path("run.json"), record); err != nil {
		return err
	}
	return d.point(run)
}

// artifactDir resolves the artifact root against the working directory. In a linked
// work tree .git is a file, and in a subdirectory there is none; a root below .git
// then means the git directory.
func (r Root) artifactDir(artifactRoot, name string) (string, error) {
	dir := artifactRoot
	if strings.HasPrefix(dir, "~") {
		expanded, err := Expand(dir)
		if err != nil {
			return "", err
		}
		dir = expanded
	}
	if filepath.IsAbs(dir) {
		return filepath.Join(dir, name), nil
	}
	rest, inGitDir := strings.CutPrefix(filepath.Clean(dir)+"/", ".git/")
	if info, err := os.Stat(filepath.Join(r.Workdir, ".git")); inGitDir && (err != nil || !info.IsDir()) {
		return filepath.Join(r.CommonDir, rest, name), nil
	}
	return filepath.Join(r.Workdir, dir, name), nil
}

var notSlug = lazily(`[^a-z0-9]+`)

// Slug turns a topic into the part of a file name (spec: state 1.4): lower-case
// ASCII letters and digits, one dash for all else, at most 80 bytes; planning-run
// when nothing is left.
func Slug(topic string) string {
	slug := strings.Trim(notSlug().ReplaceAllString(strings.ToLower(topic), "-"), "-")
	if len(slug) > 80 {
		slug = slug[:80]
	}
	if slug == "" {
		return "planning-run"
	}
	return slug
}
