package bench_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"pilothouse/integration/piharness"
)

// program reads a stream on its standard input.
type program struct {
	name  string
	words []string
	env   []string
}

func decoderProgram(b *testing.B) program {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	return program{"decoder", []string{self}, []string{readerVariable + "=1"}}
}

// nodeProgram runs on the Node that runs Pi.
func nodeProgram(b *testing.B) program {
	b.Helper()
	return program{"node", []string{piharness.NewPi(b)[0], filepath.Join("testdata", "reader.mjs")}, nil}
}

// read lets the program read the file through a pipe that cat fills, and returns
// what it tells and the CPU time of its process as the kernel counts it.
func (p program) read(b *testing.B, file string) (seen, time.Duration) {
	b.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	widen(b, out)
	feeder, reader := exec.Command("cat", file), exec.Command(p.words[0], p.words[1:]...)
	feeder.Stdout, reader.Stdin = in, out
	reader.Env = append(os.Environ(), p.env...)
	var told, complaint bytes.Buffer
	reader.Stderr = &complaint
	if p.name != "cat" {
		reader.Stdout = &told
	}
	feederErr, readerErr := feeder.Start(), reader.Start()
	for _, end := range []*os.File{in, out} { // the processes have their own
		if err := end.Close(); err != nil {
			b.Error(err)
		}
	}
	if readerErr == nil {
		readerErr = reader.Wait()
	}
	if feederErr == nil {
		feederErr = feeder.Wait()
	}
	if readerErr != nil || feederErr != nil {
		b.Fatalf("%s: %v\n%scat: %v", p.name, readerErr, &complaint, feederErr)
	}
	var s seen
	if p.name != "cat" {
		if err := json.Unmarshal(told.Bytes(), &s); err != nil {
			b.Fatalf("%s told %q: %v", p.name, &told, err)
		}
	}
	return s, reader.ProcessState.UserTime() + reader.ProcessState.SystemTime()
}
