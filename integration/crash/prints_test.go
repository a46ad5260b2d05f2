package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"pilothouse/lanes/lanestest"
)

// conduct is how the children of a round behave.
type conduct string

const (
	calm   conduct = "calm"   // answers at once
	slow   conduct = "slow"   // answers in pieces
	bad    conduct = "bad"    // fails for good
	family conduct = "family" // has grandchildren and never ends by itself
)

// prints keeps files for the stub to print.
type prints struct {
	dir  string
	made atomic.Int64
}

// switches are those of a stub that behaves so and, if it answers, gives this
// answer. The second result tells that it never ends by itself.
func (p *prints) switches(how conduct, answer string) (words []string, endless bool, err error) {
	lines := lanestest.Answer(answer)
	words = []string{"--read-stdin"}
	switch how {
	case slow:
		words = append(words, "--chunk", "400", "--pause", "3ms")
	case bad:
		lines = lanestest.Join(lanestest.Opening(), lanestest.Fails("401: bad key"), lanestest.Closing())
	case family:
		lines = lanestest.Join(lanestest.Opening(), lanestest.Streams("thinking"))
		words = append(words, "--grandchild", "inherit", "--grandchild", "setsid", "--grandchild", "daemon", "--then", "hang")
		endless = true
	}
	path := filepath.Join(p.dir, fmt.Sprintf("%d.%d.jsonl", os.Getpid(), p.made.Add(1)))
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return nil, false, err
	}
	return append(words, "--lines", path), endless, nil
}

// report is an answer that a reviewer may give, told apart by its token.
func report(token string) string {
	return "## Findings\n\nNo findings.\n\n## Checked\n\n- " + token
}
