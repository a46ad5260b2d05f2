package proc

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Environment variables that tie a process to its lane.
const (
	// EnvLane marks every process of a child's tree. Its value is one
	// "label:nonce" for each pilothouse on the way down, separated by commas, so
	// that the outermost one still finds what a nested one started.
	EnvLane = "PILOTHOUSE_LANE"
	// EnvDepth counts how many children deep a process is.
	EnvDepth = "PILOTHOUSE_DEPTH"
)

func newNonce() string {
	var raw [16]byte
	rand.Read(raw[:]) // never fails: it ends the program instead
	return hex.EncodeToString(raw[:])
}

// childEnv is the environment of a child of spec with the given nonce.
func childEnv(spec Spec, nonce string) ([]string, error) {
	depth, err := deepest(lookup(spec.Env, EnvDepth), os.Getenv(EnvDepth))
	if err != nil {
		return nil, err
	}
	lane := label(spec.Label) + ":" + nonce
	if outer := lookup(spec.Env, EnvLane); outer != "" {
		lane = outer + "," + lane
	} else if outer := os.Getenv(EnvLane); outer != "" {
		lane = outer + "," + lane
	}
	ours := []string{
		EnvLane + "=" + lane,
		EnvDepth + "=" + strconv.Itoa(depth+1),
		// The controlling terminal would let git wait for a password that nobody types.
		"GIT_TERMINAL_PROMPT=0",
	}
	if spec.Dir != "" {
		ours = append(ours, "PWD="+spec.Dir)
	}
	env := make([]string, 0, len(spec.Env)+len(ours))
	for _, kv := range spec.Env {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case name == EnvLane, name == EnvDepth, name == "GIT_TERMINAL_PROMPT", name == "PWD" && spec.Dir != "":
		default:
			env = append(env, kv)
		}
	}
	return append(env, ours...), nil
}

// deepest is the largest of the depths, each text as found in an environment. A
// text that is no depth is refused: ignoring it would open the recursion again.
func deepest(texts ...string) (int, error) {
	depth := 0
	for _, text := range texts {
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= MaxDepth {
			return 0, &DepthError{Depth: text}
		}
		depth = max(depth, n)
	}
	return depth, nil
}

// lookup returns the value of name in env; the last one counts.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(env[i], "="); ok && key == name {
			return value
		}
	}
	return ""
}

// label makes text safe for the marker: one short word.
func label(text string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._/-", r):
			return r
		}
		return '_'
	}, text)
	if safe == "" {
		return "lane"
	}
	return fmt.Sprintf("%.100s", safe)
}
