package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

var (
	// ErrNoReview tells that a review file does not exist.
	ErrNoReview = errors.New("there is no such review")
	// ErrBadReviewPath tells that a name cannot be that of a review file.
	ErrBadReviewPath = errors.New("not a review file of this run")
)

const reviewsName = "reviews"

// WriteReview keeps the full text of a lane below the run directory and returns its
// path relative to that, reviews/<roundID>__<laneID>.md. The file is durable when it
// returns, so a checkpoint may refer to it. Errors: ErrBadReviewPath, ErrNoRun,
// *LostOwnerError.
func (d RunDir) WriteReview(roundID, laneID, text string) (string, error) {
	if err := d.assertHeld(); err != nil {
		return "", fmt.Errorf("write review: %w", err)
	}
	file, err := writeReview(d.Dir, roundID, laneID, text)
	if errors.Is(err, fs.ErrNotExist) {
		return "", d.missing()
	}
	return file, err
}

// ReadReview returns the text of a review file. Paths that leave the reviews of the
// run, symbolic links included, are refused. Errors: ErrBadReviewPath, ErrNoReview.
func (d RunDir) ReadReview(file string) (string, error) { return readReview(d.Dir, file) }

func writeReview(dir, roundID, laneID, text string) (_ string, err error) {
	if !ValidID(roundID) || !ValidID(laneID) {
		return "", fmt.Errorf("write review: %w: round %q, lane %q", ErrBadReviewPath, roundID, laneID)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("write review: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	switch err := root.Mkdir(reviewsName, privateDir); {
	case err == nil:
		if err := (rootDirectory{root}).sync(); err != nil {
			return "", fmt.Errorf("write review: %w", err)
		}
	case !errors.Is(err, fs.ErrExist):
		return "", fmt.Errorf("write review: %w", err)
	}
	reviews, err := root.OpenRoot(reviewsName)
	if err != nil {
		return "", fmt.Errorf("write review: %w", err)
	}
	defer func() { err = errors.Join(err, reviews.Close()) }()
	name := roundID + "__" + laneID + ".md"
	if err := replaceFile(rootDirectory{reviews}, name, []byte(text)); err != nil {
		return "", fmt.Errorf("write review: %w", err)
	}
	return path.Join(reviewsName, name), nil
}

func readReview(dir, file string) (string, error) {
	clean, err := CleanRelative(file)
	if err != nil || !strings.HasPrefix(clean, reviewsName+"/") {
		return "", fmt.Errorf("read review: %w: %q", ErrBadReviewPath, file)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("read review: %w", err)
	}
	defer root.Close()
	data, err := root.ReadFile(clean)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read review: %w: %s", ErrNoReview, file)
	}
	if err != nil {
		return "", fmt.Errorf("read review: %w", err)
	}
	return string(data), nil
}
