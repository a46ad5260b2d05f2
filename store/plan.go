package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// ErrNoPlan tells that a directory holds no version of a plan.
var ErrNoPlan = errors.New("no PLAN_v<N>.md found")

// PlanIdentity pins a plan to its exact bytes (spec: checkpoint 2.1).
type PlanIdentity struct {
	// Path is absolute.
	Path    string `json:"path"`
	Version int    `json:"version"`
	SHA256  string `json:"sha256"`
	Extra   Extra  `json:"-" later:"stream"`
}

var planFileVersion = lazily(`PLAN_v(\d+)\.md$`)

// IdentifyPlan hashes the plan file at path. The version comes from the file name,
// PLAN_v3.md being 3, and is 1 for any other name.
func IdentifyPlan(path string) (PlanIdentity, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return PlanIdentity{}, fmt.Errorf("identify plan: %w", err)
	}
	sum, err := SHA256File(absolute)
	if err != nil {
		return PlanIdentity{}, fmt.Errorf("identify plan: %w", err)
	}
	plan := PlanIdentity{Path: absolute, Version: 1, SHA256: sum}
	if match := planFileVersion().FindStringSubmatch(filepath.Base(absolute)); match != nil {
		if n, err := strconv.Atoi(match[1]); err == nil && n >= 1 && n <= maxSafeInteger {
			plan.Version = n
		}
	}
	return plan, nil
}

// SHA256File returns the SHA-256 of the file's bytes in lower-case hex.
func SHA256File(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

var planVersionName = lazily(`(?i)^PLAN_v(\d+)\.(md|markdown)$`)

// LatestPlan returns the plan file with the highest version in dir, PLAN_v10.md
// before PLAN_v2.md. Errors: ErrNoPlan, also when there is no dir (spec: execution 5.1).
func LatestPlan(dir string) (path string, version int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", 0, fmt.Errorf("find plan: %w", err)
	}
	for _, entry := range entries {
		match := planVersionName().FindStringSubmatch(entry.Name())
		if match == nil || entry.IsDir() {
			continue
		}
		if n, err := strconv.Atoi(match[1]); err == nil && (path == "" || n > version) {
			path, version = filepath.Join(dir, entry.Name()), n
		}
	}
	if path == "" {
		return "", 0, fmt.Errorf("%w in %s", ErrNoPlan, dir)
	}
	return path, version, nil
}

// NextPlan returns the path of the version after the latest one in dir.
func NextPlan(dir string) (path string, version int, err error) {
	_, latest, err := LatestPlan(dir)
	if err != nil && !errors.Is(err, ErrNoPlan) {
		return "", 0, err
	}
	return filepath.Join(dir, fmt.Sprintf("PLAN_v%d.md", latest+1)), latest + 1, nil
}
