package compaction_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"pilothouse/integration/piharness"
	"pilothouse/supervisor/compaction"
)

// sessionBytes is how large a session the benchmarks have compacted. The bars for it
// are one second and three times its size.
const sessionBytes = 50_000_000

// writeSession writes the request for a session of that size: turns of some tool calls
// whose results are files and logs, as a Pi at work has them.
func writeSession(b *testing.B) (path string) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "request.json")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	code := strings.Repeat("\tif err := oven.Heat(220); err != nil {\n\t\treturn fmt.Errorf(\"heat the oven: %w\", err)\n\t}\n", 60)
	size, n := 0, 0
	write := func(text string) {
		m, err := f.WriteString(text)
		if err != nil {
			b.Fatal(err)
		}
		size += m
	}
	entry := func(message object) {
		data, err := json.Marshal(object{"type": "message", "id": fmt.Sprintf("e%d", n), "timestamp": "2026-11-30T10:00:00.000Z", "message": message})
		if err != nil {
			b.Fatal(err)
		}
		if n > 0 {
			write(",")
		}
		write(string(data))
		n++
	}
	text := func(s string) []object { return []object{{"type": "text", "text": s}} }
	write(`{"reason":"threshold","willRetry":false,"phase":null,"preparation":{"tokensBefore":12000000},"branchEntries":[`)
	for turn := 0; size < sessionBytes; turn++ {
		entry(object{"role": "user", "content": text(fmt.Sprintf("Now make step %d of the oven work.\nAlways keep the tests green.", turn))})
		for call := range 6 {
			id := fmt.Sprintf("t%d-%d", turn, call)
			args := object{"path": fmt.Sprintf("oven/part%d.go", turn%40)}
			name := "read"
			if call == 4 {
				name, args = "bash", object{"command": "cd /repo && go test ./... && git commit -am \"Step\""}
			}
			entry(object{"role": "assistant", "content": []object{
				{"type": "thinking", "thinking": code[:700]}, {"type": "text", "text": "I look at the next part."},
				{"type": "toolCall", "id": id, "name": name, "arguments": args},
			}, "usage": object{"input": 1, "output": 2}})
			entry(object{"role": "toolResult", "toolCallId": id, "toolName": name, "content": text(code)})
		}
		entry(object{"role": "assistant", "content": text("Done. One test failed at first: the oven was cold.")})
	}
	write("]}")
	return path
}

// BenchmarkCompile compiles the summary of a large session that is in memory. MB/s are
// those of the session as JSON; the bar is 50.
//
//	s         time of one
//	x-memory  all that is allocated meanwhile, and the session, over the session; the bar is 3
func BenchmarkCompile(b *testing.B) {
	data := read(b, writeSession(b))
	b.SetBytes(int64(len(data)))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	n := 0
	for b.Loop() {
		r, err := compaction.ParseRequest(data)
		if err != nil {
			b.Fatal(err)
		}
		if got := compaction.Compact(r); got.Action != compaction.Compacted {
			b.Fatal(got.Action, got.Reason)
		}
		n++
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	b.ReportMetric(took.Seconds()/float64(n), "s")
	b.ReportMetric(float64(len(data)+int(after.TotalAlloc-before.TotalAlloc)/n)/float64(len(data)), "x-memory")
}

// BenchmarkCommand does the same with the program, from its start to its end.
//
//	s-file    time of one that reads a file
//	s-pipe    time of one that reads a pipe
//	s-cpu     processor time of one, which a busy machine changes less
//	x-memory  the larger peak of the program's memory, over the session; the bar is 3
func BenchmarkCommand(b *testing.B) {
	path, binary := writeSession(b), piharness.Binary(b)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	var file, pipe, cpu, most float64
	run := func(prepare func(cmd *exec.Cmd)) (seconds float64) {
		cmd := exec.Command(binary, "compact")
		var out bytes.Buffer
		cmd.Dir, cmd.Stdout = dir, &out
		prepare(cmd)
		began := time.Now()
		err := cmd.Run()
		seconds = time.Since(began).Seconds()
		if err != nil || !bytes.Contains(out.Bytes(), []byte(`"action": "compaction"`)) {
			b.Fatalf("%v: %.300s", err, out.String())
		}
		cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() / 2
		most = max(most, peakMemory(cmd.ProcessState)/float64(info.Size()))
		return seconds
	}
	n := 0.0
	for b.Loop() {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		file += run(func(cmd *exec.Cmd) { cmd.Stdin = f })
		if _, err := f.Seek(0, 0); err != nil {
			b.Fatal(err)
		}
		pipe += run(func(cmd *exec.Cmd) { cmd.Stdin = struct{ *os.File }{f} }) // no file to os/exec, so a pipe
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(file/n, "s-file")
	b.ReportMetric(pipe/n, "s-pipe")
	b.ReportMetric(cpu/n, "s-cpu")
	b.ReportMetric(most, "x-memory")
}
