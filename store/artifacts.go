package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	// ErrNoArtifacts tells that the artifact directory of a run is gone.
	ErrNoArtifacts = errors.New("the artifact directory is missing")
	// ErrArtifactConflict tells that a file to copy exists already with other content.
	ErrArtifactConflict = errors.New("a different file is there already")
)

// CopyArtifacts brings the artifacts of a run into this work tree and returns the
// directory they are in now (spec: checkpoint 2.6). Artifacts in the state root are
// shared by all work trees and stay. Only regular files at the top level are copied,
// none is overwritten, and nothing is copied when one differs. Errors:
// ErrNoArtifacts, ErrArtifactConflict, those of [Root.LoadConfig].
func (r Root) CopyArtifacts(artifactDir string) (string, error) {
	entries, err := os.ReadDir(artifactDir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("copy artifacts: %w: %s", ErrNoArtifacts, artifactDir)
	}
	if err != nil {
		return "", fmt.Errorf("copy artifacts: %w", err)
	}
	if strings.HasPrefix(filepath.Clean(artifactDir), r.Dir+string(filepath.Separator)) {
		return artifactDir, nil
	}
	config, err := r.LoadConfig()
	if err != nil {
		return "", err
	}
	target, err := r.artifactDir(config.ArtifactRoot, filepath.Base(artifactDir))
	if err != nil {
		return "", err
	}
	missing, err := missingArtifacts(entries, artifactDir, target)
	if err != nil {
		return "", fmt.Errorf("copy artifacts: %w", err)
	}
	if err := makeDirectory(target, 0o755); err != nil {
		return "", fmt.Errorf("copy artifacts: %w", err)
	}
	for name, content := range missing {
		path := filepath.Join(target, name)
		if err := CreateFile(path, content); err != nil {
			return "", fmt.Errorf("copy artifacts: %w", err)
		}
		// Artifacts are documents of the project, not private state.
		if err := os.Chmod(path, 0o644); err != nil {
			return "", fmt.Errorf("copy artifacts: %w", err)
		}
	}
	return target, nil
}

func missingArtifacts(entries []os.DirEntry, from, to string) (map[string][]byte, error) {
	missing := map[string][]byte{}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(from, entry.Name()))
		if err != nil {
			return nil, err
		}
		present, err := os.ReadFile(filepath.Join(to, entry.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing[entry.Name()] = content
		case err != nil:
			return nil, err
		case !bytes.Equal(present, content):
			return nil, fmt.Errorf("%w: %s", ErrArtifactConflict, filepath.Join(to, entry.Name()))
		}
	}
	return missing, nil
}
