package supervisor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"pilothouse/store"
	"pilothouse/supervisor/compaction"
)

// Compact compiles one compaction request outside of any session: what [compaction]
// does, with the settings of the workspace's pi-vcc-config.json where the request has
// none. Snapshot is where the setting debug has it described, "" for the usual place.
// Notices tell of settings that could not be read and of a snapshot that could not be
// written; neither is a reason not to compact. Errors match [compaction.ErrRequest].
func Compact(ctx context.Context, workdir, snapshot string, request []byte) (result compaction.Result, notices []string, err error) {
	r, err := compaction.ParseRequest(request)
	if err != nil {
		return result, nil, err
	}
	if r.Settings == nil {
		config, err := workspaceCompaction(ctx, workdir)
		if err != nil {
			notices = append(notices, err.Error()+"; the defaults hold")
		}
		r.Settings = compilerSettings(config)
	}
	result = compaction.Compact(r)
	if r.Settings.Debug {
		if err := writeSnapshot(snapshot, r, result); err != nil {
			notices = append(notices, err.Error())
		}
	}
	return result, notices, nil
}

// workspaceCompaction are the settings of a workspace, the defaults where it has none.
func workspaceCompaction(ctx context.Context, workdir string) (store.CompactionConfig, error) {
	root, err := store.Find(ctx, workdir)
	if errors.Is(err, store.ErrNoRepository) {
		return store.DefaultCompactionConfig(), nil
	}
	if err != nil {
		return store.DefaultCompactionConfig(), err
	}
	return root.LoadCompactionConfig()
}

func compilerSettings(c store.CompactionConfig) *compaction.Settings {
	return &compaction.Settings{OverrideDefault: c.OverrideDefaultCompaction, SmartKeepTail: c.SmartKeepTail, Debug: c.Debug}
}

// snapshot describes the last compaction for somebody who looks for a fault.
type snapshot struct {
	UsedOwnCut   bool                   `json:"usedOwnCut"`
	Action       compaction.Action      `json:"action"`
	ReasonGiven  string                 `json:"reasonGiven,omitempty"`
	Phase        string                 `json:"phase,omitempty"`
	Reason       string                 `json:"reason"`
	WillRetry    bool                   `json:"willRetry"`
	Instructions string                 `json:"instructions,omitempty"`
	Compaction   *compaction.Compaction `json:"compaction,omitempty"`
}

func writeSnapshot(path string, r compaction.Request, result compaction.Result) error {
	s := snapshot{
		UsedOwnCut: result.Action == compaction.Compacted, Action: result.Action, ReasonGiven: result.Reason,
		Reason: r.Reason, WillRetry: r.WillRetry, Instructions: r.Instructions, Compaction: result.Compaction,
	}
	if r.Phase != nil {
		s.Phase = r.Phase.Kind
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write compaction snapshot: %w", err)
	}
	return store.WriteCompactionSnapshot(cmp.Or(path, store.CompactionSnapshotPath), append(data, '\n'))
}
