package crash_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"pilothouse/store"
)

// kinds of files that may be in a state root, by path. What is in none of them is
// nobody's.
var (
	temporary = regexp.MustCompile(`^(.*/)?\.[^/]+\.\d+\.[0-9a-f]{12}\.tmp$`)
	scratch   = regexp.MustCompile(`^tmp/lane-\d+(/system-prompt\.md)?$`)
	cache     = regexp.MustCompile(`^cache/`)
	whole     = regexp.MustCompile(`^((config|active)\.json|pilothouse/[a-z]+\.(json|jsonl|lock))$|` +
		`^runs/[^/]+/((run|checkpoint|owner)\.json|(decisions|subagents|refs)\.jsonl|owner\.json\.lock)$|` +
		`^runs/[^/]+/reviews/[A-Za-z0-9._-]+__[a-z-]+\.md$|` +
		`^runs/[^/]+/pilothouse/([a-z]+\.(json|jsonl|lock)|alive-[0-9a-f]{32}\.(json|lock)|rounds/[A-Za-z0-9._-]+\.json|torn-[0-9a-f]{8}-[a-z]+\.jsonl)$`)
)

// litter is what a kill may leave and what must not pile up, by path.
type litter struct{ temporary, scratch, alive, broken []string }

// inspect reads every file of a state root by the strict rules and counts what was
// left behind.
func inspect(root store.Root) (left litter, problems []error) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	err := filepath.WalkDir(root.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root.Dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case temporary.MatchString(name):
			left.temporary = append(left.temporary, name)
		case scratch.MatchString(name):
			if entry.IsDir() {
				left.scratch = append(left.scratch, name)
			}
		case entry.IsDir(), cache.MatchString(name):
		case !whole.MatchString(name):
			problem("%s is nobody's", name)
		default:
			if strings.Contains(name, "/alive-") {
				left.alive = append(left.alive, name)
			}
			if strings.HasSuffix(name, ".jsonl") && !strings.Contains(name, "/torn-") {
				if err := checkLedger(path); err != nil {
					problem("%s: %w", name, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		problem("walk: %w", err)
	}
	if _, err := root.LoadConfig(); err != nil {
		problem("%w", err)
	}
	runs, err := root.Runs()
	if err != nil {
		problem("%w", err)
	}
	for _, run := range runs {
		if errors.Is(run.Err, store.ErrNoRun) { // killed before it was one
			left.broken = append(left.broken, run.Dir.ID)
			continue
		}
		if run.Err != nil {
			problem("%w", run.Err)
		}
		if _, err := run.Dir.LoadCheckpoint(); err != nil && !errors.Is(err, store.ErrNoCheckpoint) {
			problem("%w", err)
		}
		if _, err := run.Dir.RoundDir().Rounds(); err != nil {
			problem("%w", err)
		}
		if err := awaitDeadOwner(run.Dir); err != nil {
			problem("run %s: %w", run.Dir.ID, err)
		}
	}
	return left, problems
}

// awaitDeadOwner returns when the owner of a run is none or dead. A child that a driver
// was just starting holds its sign of life for as long as it is not another program.
func awaitDeadOwner(run store.RunDir) error {
	deadline := time.Now().Add(patience)
	for {
		owner, state, err := run.Owner()
		switch {
		case err != nil || state == store.OwnerNone || state == store.OwnerDead:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("process %d is dead and judged %s", owner.PID, state)
		}
		time.Sleep(time.Millisecond)
	}
}

// checkLedger reads a ledger as the other program does, which gives up at a line
// that is no object. Only the last may be cut short.
func checkLedger(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i, line := range lines {
		var entry map[string]any
		if err := json.Unmarshal(line, &entry); err != nil && (i < len(lines)-1 || bytes.HasSuffix(line, []byte("\n"))) {
			return fmt.Errorf("line %d, %q: %w", i+1, line, err)
		}
	}
	return nil
}
