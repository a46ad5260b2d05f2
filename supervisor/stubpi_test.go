package supervisor_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pilothouse/lanes/proc"
	"pilothouse/supervisor"
)

// stubMarker makes the test binary play pi: it reads its task on stdin and
// answers with events in the form of Pi 1.6.0.
const stubMarker = "PILOTHOUSE_STUB_PI=1"

func TestMain(m *testing.M) {
	proc.GuardMain()
	if os.Getenv("PILOTHOUSE_STUB_PI") != "" {
		stubPi(os.Stdin, os.Stdout)
		return
	}
	if os.Getenv(supervisor.StoryVariable) != "" {
		os.Exit(supervisor.TellStory())
	}
	goleak.VerifyTestMain(m)
}

// stubPi obeys words in the task: "STUB-HOLD" starts to answer and then waits for
// SIGTERM, "STUB-401" and "STUB-503" fail, "STUB-ENV name" answers with an environment
// variable. Otherwise it answers at once. The environment may name a journal, see
// stubJournal, and a file that it waits for before it answers.
func stubPi(in io.Reader, out io.Writer) {
	task, err := io.ReadAll(in)
	if err != nil {
		os.Exit(1)
	}
	noteEnd := stubJournal()
	w := bufio.NewWriter(out)
	event := func(format string, args ...any) {
		fmt.Fprintf(w, format+"\n", args...)
		_ = w.Flush()
	}
	event(`{"type":"session","version":3,"id":"stub"}`)
	event(`{"type":"agent_start"}`)
	event(`{"type":"turn_start"}`)
	for gate := os.Getenv("PILOTHOUSE_STUB_GATE"); gate != ""; time.Sleep(2 * time.Millisecond) {
		if _, err := os.Stat(gate); err == nil {
			break
		}
	}
	switch {
	case strings.Contains(string(task), "STUB-HOLD") && os.Getenv("PILOTHOUSE_STUB_PI") != "answering":
		event(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"thinking about it"}}`)
		end := make(chan os.Signal, 1)
		signal.Notify(end, syscall.SIGTERM)
		<-end
		os.Exit(143)
	case strings.Contains(string(task), "STUB-401"):
		message(event, "", "error", "401: bad key")
	case strings.Contains(string(task), "STUB-503"):
		message(event, "", "error", "503: come again")
	default:
		answer := "## Findings\nNo findings.\n\n## Checked\n- everything\n"
		if _, name, found := strings.Cut(string(task), "STUB-ENV "); found {
			answer = name[:strings.IndexByte(name, '\n')] + "=" + os.Getenv(name[:strings.IndexByte(name, '\n')])
		}
		message(event, answer, "stop", "")
	}
	event(`{"type":"agent_end","messages":[],"willRetry":false}`)
	event(`{"type":"agent_settled","aborted":false}`)
	noteEnd()
}

// stubJournal notes that a child works in its directory, and that it has ended.
func stubJournal() (end func()) {
	path := os.Getenv("PILOTHOUSE_STUB_JOURNAL")
	if path == "" {
		return func() {}
	}
	journal, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(1)
	}
	dir, _ := os.Getwd()
	fmt.Fprintf(journal, "begin %s\n", filepath.Base(dir))
	return func() { fmt.Fprintf(journal, "end %s\n", filepath.Base(dir)) }
}

func message(event func(string, ...any), text, stop, failure string) {
	content := []map[string]string{}
	if text != "" {
		content = append(content, map[string]string{"type": "text", "text": text})
	}
	m, err := json.Marshal(map[string]any{
		"role": "assistant", "content": content, "model": "stub", "stopReason": stop, "errorMessage": failure,
		"usage": map[string]any{"input": 10, "output": 5, "cost": map[string]any{"total": 0.25}},
	})
	if err != nil {
		panic(err)
	}
	event(`{"type":"message_end","message":%s}`, m)
}
