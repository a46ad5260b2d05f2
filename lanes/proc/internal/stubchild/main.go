// Command stubchild plays a child process that behaves or misbehaves as told.
// Tests put it in the place of pi: arguments that it does not know are ignored.
//
// It goes through its switches in this order, whatever their order in argv:
//
//	--marker TOKEN       nothing; the token makes the process findable, grandchildren get it too
//	--start-delay D      sleep first (a Go duration)
//	--lock-dir DIR       fail like a start-up race when DIR exists; hold it for 100 ms else
//	--ignore SIGS        ignore these signals ("TERM,HUP"), grandchildren too
//	--flush-on-term      answer TERM with exit 143, but only when all output is written
//	--grandchild KIND    start one that sleeps, may be repeated:
//	                       inherit   same group, holds the pipes
//	                       detached  same group, stdio on /dev/null
//	                       setsid    session of its own, holds the pipes
//	                       daemon    session of its own, stdio on /dev/null, orphaned
//	                       scrubbed  as daemon, holds the pipes, empty environment
//	--close-stdin        close descriptor 0
//	--read-stdin         read stdin to its end
//	--env-dump FILE      write the environment, one variable a line
//	--argv-dump FILE     write the arguments, one a line
//	--stdin-dump FILE    write what --read-stdin has read
//	--ready              print the line "ready"
//	--lines FILE         print FILE, in pieces of --chunk N bytes with --pause D after each
//	--times N            do so N times (the default is once), 0 for ever
//	--big BYTES          print that many bytes, in lines of 1 KiB
//	--stderr BYTES       write that many bytes to stderr, in lines of 1 KiB
//	--stderr-lines FILE  write FILE to stderr
//	--play WHAT          play pi instead of all but --marker: "random:SEED" draws what to do
//	                     from SEED and the lane's name, "hold:BYTES" prints that much and hangs,
//	                     "steady:D" prints a delta every D until --gate opens, then answers
//	--gate PIPE          a byte in it opens it for one child
//	--journal DIR        where --play notes what it does; it sleeps for up to --start-delay
//	                     when it has read its task
//	--then END           exit:N (the default is exit:0), kill:SIG, hang, close-stdout
//	                     (and hang), spam (print for ever), daemonize (leave a daemon, exit 0);
//	                     "exit N" and "kill SIG" in one argument do as well
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	s := parse(os.Args[1:])
	if s.play != "" {
		s.perform()
		s.end()
		return
	}
	time.Sleep(s.startDelay)
	s.contend()
	s.ignoreSignals()
	if s.flushOnTerm {
		s.answerTerm()
	}
	for _, kind := range s.grandchildren {
		s.spawn(kind)
	}
	s.input()
	s.output.Lock()
	s.print()
	s.output.Unlock()
	s.end()
}

type stub struct {
	marker, lockDir, envDump, argvDump, stdinDump string
	lines, stderrLines, play, gate, journal, then string
	ignore                                        []string
	grandchildren                                 []string
	startDelay, pause                             time.Duration
	chunk, times, big, stderr                     int
	flushOnTerm, closeStdin, readStdin, ready     bool

	output sync.Mutex // held while output is being written
}

func parse(args []string) *stub {
	s := &stub{then: "exit:0", times: 1}
	for i := 0; i < len(args); i++ {
		value := func() string {
			i++
			if i >= len(args) {
				fail("%s needs a value", args[i-1])
			}
			return args[i]
		}
		switch args[i] {
		case "--marker":
			s.marker = value()
		case "--start-delay":
			s.startDelay = duration(value())
		case "--lock-dir":
			s.lockDir = value()
		case "--ignore":
			s.ignore = strings.Split(value(), ",")
		case "--flush-on-term":
			s.flushOnTerm = true
		case "--grandchild":
			s.grandchildren = append(s.grandchildren, value())
		case "--close-stdin":
			s.closeStdin = true
		case "--read-stdin":
			s.readStdin = true
		case "--env-dump":
			s.envDump = value()
		case "--argv-dump":
			s.argvDump = value()
		case "--stdin-dump":
			s.stdinDump = value()
		case "--ready":
			s.ready = true
		case "--lines":
			s.lines = value()
		case "--chunk":
			s.chunk = number(value())
		case "--pause":
			s.pause = duration(value())
		case "--times":
			s.times = number(value())
		case "--big":
			s.big = number(value())
		case "--stderr":
			s.stderr = number(value())
		case "--stderr-lines":
			s.stderrLines = value()
		case "--play":
			s.play = value()
		case "--gate":
			s.gate = value()
		case "--journal":
			s.journal = value()
		case "--then":
			s.then = strings.Replace(value(), " ", ":", 1)
		}
	}
	return s
}

// contend plays the race of several children for one lock directory.
func (s *stub) contend() {
	if s.lockDir == "" {
		return
	}
	if os.Mkdir(s.lockDir, 0o700) != nil {
		fail("No API key found")
	}
	time.Sleep(100 * time.Millisecond)
	_ = os.Remove(s.lockDir)
}

func (s *stub) ignoreSignals() {
	for _, name := range s.ignore {
		signal.Ignore(signalNumber(name))
	}
}

func (s *stub) answerTerm() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() {
		<-asked
		s.output.Lock()
		os.Exit(128 + int(syscall.SIGTERM))
	}()
}

// spawn starts a grandchild that sleeps until it is killed.
func (s *stub) spawn(kind string) {
	args := []string{"--marker", s.marker}
	if len(s.ignore) > 0 {
		args = append(args, "--ignore", strings.Join(s.ignore, ","))
	}
	orphan := kind == "daemon" || kind == "scrubbed"
	if orphan { // its parent ends at once
		args = append(args, "--grandchild", "setsid")
	} else {
		args = append(args, "--then", "hang")
	}
	self, err := os.Executable()
	if err != nil {
		fail("%v", err)
	}
	cmd := exec.Command(self, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: orphan || kind == "setsid"}
	if kind == "inherit" || kind == "setsid" || kind == "scrubbed" {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	if kind == "scrubbed" {
		cmd.Env = []string{}
	}
	if err := cmd.Start(); err != nil {
		fail("%v", err)
	}
	if orphan {
		_ = cmd.Wait()
	}
}

func (s *stub) input() {
	if s.closeStdin {
		_ = os.Stdin.Close()
	}
	var task []byte
	if s.readStdin {
		task, _ = io.ReadAll(os.Stdin)
	}
	dump(s.envDump, []byte(strings.Join(os.Environ(), "\n")))
	dump(s.argvDump, []byte(strings.Join(os.Args[1:], "\n")))
	dump(s.stdinDump, task)
}

func (s *stub) print() {
	if s.ready {
		fmt.Println("ready")
	}
	text := read(s.lines)
	for n := 0; s.lines != "" && (n < s.times || s.times == 0); n++ {
		s.printPieces(text)
	}
	filler(os.Stdout, s.big)
	filler(os.Stderr, s.stderr)
	_, _ = os.Stderr.Write(read(s.stderrLines))
}

func (s *stub) printPieces(text []byte) {
	for len(text) > 0 {
		n := len(text)
		if s.chunk > 0 {
			n = min(n, s.chunk)
		}
		_, _ = os.Stdout.Write(text[:n])
		text = text[n:]
		time.Sleep(s.pause)
	}
}

func (s *stub) end() {
	end, value, _ := strings.Cut(s.then, ":")
	switch end {
	case "exit":
		os.Exit(number(value))
	case "kill":
		_ = syscall.Kill(os.Getpid(), signalNumber(value))
		hang()
	case "hang":
		hang()
	case "close-stdout":
		_ = os.Stdout.Close()
		hang()
	case "spam":
		signal.Ignore(syscall.SIGPIPE)
		for { // does not care whether anybody reads
			filler(os.Stdout, 1<<10)
		}
	case "daemonize":
		s.spawn("daemon")
	default:
		fail("--then %s is unknown", s.then)
	}
}

// hang sleeps for an hour, long past any test, so that a leak ends some time.
func hang() { time.Sleep(time.Hour) }

// fillerBlock is what filler writes at once, in lines of 1 KiB.
var fillerBlock = bytes.Repeat(append(bytes.Repeat([]byte("x"), 1023), '\n'), 64)

func filler(w io.Writer, n int) {
	for ; n > 0; n -= len(fillerBlock) {
		_, _ = w.Write(fillerBlock[max(0, len(fillerBlock)-n):])
	}
}

func read(file string) []byte {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		fail("%v", err)
	}
	return text
}

func dump(file string, text []byte) {
	if file == "" {
		return
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		fail("%v", err)
	}
}

func signalNumber(name string) syscall.Signal {
	n := unix.SignalNum("SIG" + strings.TrimPrefix(name, "SIG"))
	if n == 0 {
		fail("signal %s is unknown", name)
	}
	return n
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		fail("%v", err)
	}
	return n
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		fail("%v", err)
	}
	return d
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "stubchild: "+format+"\n", args...)
	os.Exit(1)
}
