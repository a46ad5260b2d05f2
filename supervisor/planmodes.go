package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pilothouse/store"
)

// planModes keep the plan mode of each session. A transition is durable before anybody
// hears of it: a session whose plan mode was forgotten by a restart could write.
type planModes struct {
	dir    string // one file a session; "" keeps all in memory
	logger *slog.Logger
	now    func() time.Time

	mu       sync.Mutex
	sessions map[string]*planSession
}

// planSession is the plan mode of a session. Its lock is held while the file is
// written, so that only the session itself waits.
type planSession struct {
	mu     sync.Mutex
	loaded bool
	mode   planMode
}

// planModeFile is the file of a session.
type planModeFile struct {
	Schema  int    `json:"schema"`
	Session string `json:"session"`
	planMode
	UpdatedAt time.Time `json:"updatedAt"`
}

const planModeSchema = 1

// planModeAge is how long the plan mode of a session that never ended is kept.
const planModeAge = 30 * 24 * time.Hour

// newPlanModes makes the directory and drops what is too old.
func newPlanModes(dir string, logger *slog.Logger, now func() time.Time) (*planModes, error) {
	t := &planModes{dir: dir, logger: logger, now: now, sessions: map[string]*planSession{}}
	if dir == "" {
		return t, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for the state of sessions: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the state of sessions: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !strings.HasSuffix(entry.Name(), ".json") || now().Sub(info.ModTime()) < planModeAge {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			logger.Warn("the old state of a session stays", "error", err)
		}
	}
	return t, nil
}

func (t *planModes) path(session string) string { return filepath.Join(t.dir, session+".json") }

func (t *planModes) of(session string) *planSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[session]
	if s == nil {
		s = &planSession{}
		t.sessions[session] = s
	}
	return s
}

// get is the plan mode of a session. An error means that it is not known: then the
// session has to be taken for one in plan mode.
func (t *planModes) get(session string) (planMode, error) {
	s := t.of(session)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := t.load(session, s); err != nil {
		return planMode{}, err
	}
	return s.mode, nil
}

// change makes a transition and returns the states before and after it. When it cannot
// be made durable, it has not happened.
func (t *planModes) change(session string, transition func(planMode) (planMode, bool)) (before, after planMode, err error) {
	s := t.of(session)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := t.load(session, s); err != nil {
		return planMode{}, planMode{}, err
	}
	next, changed := transition(s.mode)
	if !changed {
		return s.mode, s.mode, nil
	}
	if err := t.save(session, next); err != nil {
		return s.mode, s.mode, err
	}
	before, s.mode = s.mode, next
	return before, next, nil
}

// end forgets a session.
func (t *planModes) end(session string) error {
	s := t.of(session)
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.dir != "" {
		if err := os.Remove(t.path(session)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget the plan mode of the session: %w", err)
		}
	}
	s.mode, s.loaded = planMode{}, true
	t.mu.Lock()
	delete(t.sessions, session)
	t.mu.Unlock()
	return nil
}

// load reads the file of a session once. One that makes no sense is put aside, and its
// session is in plan mode: nothing tells that it was not.
func (t *planModes) load(session string, s *planSession) error {
	if s.loaded {
		return nil
	}
	if t.dir == "" {
		s.loaded = true
		return nil
	}
	data, err := os.ReadFile(t.path(session))
	if errors.Is(err, fs.ErrNotExist) {
		s.loaded = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the plan mode of the session: %w", err)
	}
	var file planModeFile
	err = json.Unmarshal(data, &file)
	if err == nil && file.Schema == planModeSchema && file.Session == session {
		s.mode, s.loaded = file.planMode, true
		return nil
	}
	aside := t.path(session) + ".damaged"
	if err := store.WriteFile(aside, data); err != nil {
		return fmt.Errorf("put the damaged plan mode of the session aside: %w", err)
	}
	t.logger.Warn("the plan mode of a session is damaged; it is taken to be on", "session", session, "file", aside)
	mode, _ := planMode{}.enter()
	if err := t.save(session, mode); err != nil {
		return err
	}
	s.mode, s.loaded = mode, true
	return nil
}

func (t *planModes) save(session string, mode planMode) error {
	if t.dir == "" {
		return nil
	}
	data, err := json.Marshal(planModeFile{Schema: planModeSchema, Session: session, planMode: mode, UpdatedAt: t.now().UTC()})
	if err != nil {
		return fmt.Errorf("encode the plan mode of the session: %w", err)
	}
	if err := store.WriteFile(t.path(session), append(data, '\n')); err != nil {
		return fmt.Errorf("keep the plan mode of the session: %w", err)
	}
	return nil
}
