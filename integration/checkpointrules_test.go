package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
)

// This file is a second, independent reading of the checkpoint's schema (spec:
// checkpoint 2.1), strict as the program is whose files these are: a key that it
// does not know makes a file corrupt.

// rule checks a JSON value found at a path.
type rule func(at string, v any) error

type key struct {
	name     string
	optional bool
	rule     rule
}

func need(name string, r rule) key { return key{name, false, r} }
func may(name string, r rule) key  { return key{name, true, r} }

func objectOf(keys ...key) rule {
	return func(at string, v any) error {
		object, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is no object: %v", at, v)
		}
		for name := range object {
			if !slices.ContainsFunc(keys, func(k key) bool { return k.name == name }) {
				return fmt.Errorf("%s has the unknown key %q", at, name)
			}
		}
		for _, k := range keys {
			value, there := object[k.name]
			if !there && k.optional {
				continue
			}
			if !there {
				return fmt.Errorf("%s lacks %q", at, k.name)
			}
			if err := k.rule(at+"."+k.name, value); err != nil {
				return err
			}
		}
		return nil
	}
}

func listOf(r rule) rule {
	return func(at string, v any) error {
		items, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s is no list: %v", at, v)
		}
		for i, item := range items {
			if err := r(fmt.Sprintf("%s[%d]", at, i), item); err != nil {
				return err
			}
		}
		return nil
	}
}

func orNull(r rule) rule {
	return func(at string, v any) error {
		if v == nil {
			return nil
		}
		return r(at, v)
	}
}

func matching(pattern string, forbidden ...string) rule {
	compiled := regexp.MustCompile(pattern)
	return func(at string, v any) error {
		text, ok := v.(string)
		if !ok || !compiled.MatchString(text) {
			return fmt.Errorf("%s does not match %s: %v", at, pattern, v)
		}
		for _, part := range forbidden {
			if strings.Contains(text, part) {
				return fmt.Errorf("%s has %q in it: %s", at, part, text)
			}
		}
		return nil
	}
}

func oneOf(allowed ...string) rule {
	return func(at string, v any) error {
		if text, ok := v.(string); !ok || !slices.Contains(allowed, text) {
			return fmt.Errorf("%s is none of %v: %v", at, allowed, v)
		}
		return nil
	}
}

func atLeast(least int64) rule {
	return func(at string, v any) error {
		number, _ := v.(json.Number)
		if n, err := number.Int64(); err != nil || n < least || n > 1<<53-1 {
			return fmt.Errorf("%s is no integer from %d: %v", at, least, v)
		}
		return nil
	}
}

func truth(at string, v any) error {
	if _, ok := v.(bool); !ok {
		return fmt.Errorf("%s is no boolean: %v", at, v)
	}
	return nil
}

func absolute(at string, v any) error {
	if text, ok := v.(string); !ok || !filepath.IsAbs(text) {
		return fmt.Errorf("%s is no absolute path: %v", at, v)
	}
	return nil
}

func contained(at string, v any) error {
	if text, ok := v.(string); !ok || !filepath.IsLocal(text) || strings.Contains(text, `\`) || text != filepath.ToSlash(filepath.Clean(text)) {
		return fmt.Errorf("%s is no contained path: %v", at, v)
	}
	return nil
}

var (
	anyText   = matching(`(?s)^.*$`)
	id        = matching(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`, "..")
	timestamp = matching(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
	sha       = matching(`^[0-9a-f]{64}$`)

	planIdentity = objectOf(need("path", absolute), need("version", atLeast(1)), need("sha256", sha))
	reviewLane   = objectOf(
		need("laneId", id), may("lens", anyText), need("status", oneOf("pending", "running", "complete", "failed")),
		may("resultFile", contained), may("startedAt", timestamp), may("completedAt", timestamp))
	reviewRound = objectOf(
		need("roundId", id), need("role", oneOf("reviewer", "criticizer")), need("target", oneOf("plan", "implementation")),
		may("planSha256", sha), may("focus", anyText), may("context", anyText), need("reviewers", atLeast(1)), need("lanes", listOf(reviewLane)),
		need("consolidated", truth), may("dispositionArtifact", contained), need("startedAt", timestamp),
		may("completedAt", timestamp), may("originWorktree", anyText))
	checkpointSchema = objectOf(
		need("schema", atLeast(1)), need("runId", matching(`^\d{8}T\d{6}Z-[A-Za-z0-9][A-Za-z0-9._-]*$`, "..")),
		need("revision", atLeast(1)), need("generation", atLeast(1)), need("updatedAt", timestamp),
		need("phase", oneOf("planning", "reviewing", "executing", "implementation-review", "completed")),
		need("nextAction", oneOf("ask-question", "continue-planning", "run-review", "consolidate-review", "revise-plan", "accept-execute",
			"execute-items", "apply-review-fixes", "verify-review-fixes", "finish-review", "none")),
		need("originWorkdir", absolute), need("workdir", absolute), need("worktreeRoot", absolute), need("commonDir", absolute),
		need("plan", orNull(planIdentity)),
		need("pendingQuestion", orNull(objectOf(
			need("questionId", id), need("question", anyText), need("options", listOf(anyText)), may("purpose", anyText),
			may("allowOther", truth), may("autoComplete", truth), need("askedAt", timestamp)))),
		need("answeredQuestions", listOf(objectOf(
			need("questionId", id), need("answer", anyText), need("source", oneOf("user", "auto-complete", "other")), need("answeredAt", timestamp)))),
		need("reviewRounds", listOf(reviewRound)),
		may("implementationReview", objectOf(may("terminationCondition", anyText), need("completedRounds", atLeast(0)), may("currentRoundId", id))),
		may("autoComplete", truth))
)

// checkpointFile is what the tests read of a checkpoint.
type checkpointFile struct {
	Schema, Revision, Generation int
	RunID, Phase, NextAction     string
	Plan                         *struct {
		Path    string
		Version int
		SHA256  string
	}
	ReviewRounds []struct {
		RoundID, Role, PlanSHA256 string
		Reviewers                 int
		Consolidated              bool
		Lanes                     []struct{ LaneID, Lens, Status, ResultFile, CompletedAt string }
	}
}

// readCheckpoint reads a checkpoint by the strict rules.
func readCheckpoint(data []byte) (checkpointFile, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var raw any
	if err := decoder.Decode(&raw); err != nil {
		return checkpointFile{}, fmt.Errorf("checkpoint is not JSON: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return checkpointFile{}, fmt.Errorf("something follows the checkpoint's object")
	}
	if err := checkpointSchema("checkpoint", raw); err != nil {
		return checkpointFile{}, err
	}
	var c checkpointFile
	if err := json.Unmarshal(data, &c); err != nil {
		return checkpointFile{}, err
	}
	if c.Schema != 1 {
		return checkpointFile{}, fmt.Errorf("checkpoint has schema %d", c.Schema)
	}
	for _, round := range c.ReviewRounds {
		for _, lane := range round.Lanes {
			if (lane.Status == "complete") != (lane.ResultFile != "") {
				return checkpointFile{}, fmt.Errorf("lane %s is %s with result file %q", lane.LaneID, lane.Status, lane.ResultFile)
			}
		}
	}
	return c, nil
}

// checkpoint reads the checkpoint of a run.
func (w *workspace) checkpoint(runID string) checkpointFile {
	w.t.Helper()
	data := piharness.ReadFile(w.t, w.runFile(runID, "checkpoint.json"))
	checkTabs(w.t, "checkpoint.json", data)
	c, err := readCheckpoint([]byte(data))
	if err != nil {
		w.t.Fatalf("%v\n%s", err, data)
	}
	return c
}

// TestTheStrictRulesRefuseWhatTheSpecRefuses keeps the rules above honest.
func TestTheStrictRulesRefuseWhatTheSpecRefuses(t *testing.T) {
	t.Parallel()
	valid := `{"schema":1,"runId":"20260101T000000Z-x","revision":1,"generation":1,"updatedAt":"2026-01-01T00:00:00Z","phase":"planning",` +
		`"nextAction":"continue-planning","originWorkdir":"/a","workdir":"/a","worktreeRoot":"/a","commonDir":"/a/.git","plan":null,` +
		`"pendingQuestion":null,"answeredQuestions":[],"reviewRounds":[]}`
	if _, err := readCheckpoint([]byte(valid)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"an unknown key":       {`"plan":null`, `"plan":null,"extra":1`},
		"a missing key":        {`"plan":null,`, ``},
		"a fraction":           {`"revision":1`, `"revision":1.5`},
		"revision zero":        {`"revision":1`, `"revision":0`},
		"another schema":       {`"schema":1`, `"schema":2`},
		"a time with fraction": {`00:00:00Z`, `00:00:00.5Z`},
		"an unknown phase":     {`"planning"`, `"dreaming"`},
		"a relative directory": {`"workdir":"/a"`, `"workdir":"a"`},
		"a second object":      {`"reviewRounds":[]}`, `"reviewRounds":[]}{}`},
	} {
		if _, err := readCheckpoint([]byte(strings.Replace(valid, change[0], change[1], 1))); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
