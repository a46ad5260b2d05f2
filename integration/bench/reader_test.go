package bench_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
)

// readerVariable makes this test binary read an event stream on its standard input
// instead of running tests, so that the decoder has a process of its own whose CPU
// time and memory can be told.
const readerVariable = "PILOTHOUSE_BENCH_READER"

func TestMain(m *testing.M) {
	proc.GuardMain() // this binary is the guard of the children that it starts itself
	if os.Getenv(readerVariable) == "" {
		os.Exit(m.Run())
	}
	if err := readStream(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// seen is what a reader tells of its stream: proof that it has read all of it, and
// its peak memory.
type seen struct {
	Transcript digest `json:"transcript"` // all text deltas
	Answer     digest `json:"answer"`     // text of the last answer
	PeakKiB    int64  `json:"peakKiB"`    // VmHWM; 0 where there is none
}

type digest struct {
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func digestOf(text string) digest {
	sum := sha256.Sum256([]byte(text))
	return digest{Bytes: len(text), SHA256: hex.EncodeToString(sum[:])}
}

// readStream does to its standard input what a lane does to a child's output, and
// also collects the text of all turns, which a lane keeps of the current one only.
func readStream() error {
	// As the pipe of a real child: read through the runtime's poller.
	if err := syscall.SetNonblock(syscall.Stdin, true); err != nil {
		return fmt.Errorf("prepare stdin: %w", err)
	}
	reader := pijson.NewReader(os.NewFile(uintptr(syscall.Stdin), "stdin"), pijson.ReaderOptions{})
	fold := pijson.NewFold(pijson.FoldOptions{AllowedTools: []string{"read", "grep", "find", "ls"}})
	var transcript []byte
	for {
		event, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		if event.Kind == pijson.KindTextDelta {
			transcript = append(transcript, event.Text...)
		}
		fold.Apply(event)
	}
	verdict := fold.Verdict(pijson.End{Stats: reader.Stats()})
	peak, err := peakMemory() // before the digests take memory of their own
	if err != nil {
		return err
	}
	report := seen{Transcript: digestOf(string(transcript)), Answer: digestOf(verdict.Output), PeakKiB: peak}
	return json.NewEncoder(os.Stdout).Encode(report)
}
