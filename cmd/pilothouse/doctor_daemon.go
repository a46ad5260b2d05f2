package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pilothouse/supervisor/api"
)

// lookPatience bounds each question to a program that may be ill.
const lookPatience = 3 * time.Second

// daemonFinding is what there is to be said about the daemon of this user and about
// what it needs around it. Commands work without a daemon, so that none runs is no
// fault. What is configured is read from the environment of the doctor, which may be
// another one than the daemon's.
type daemonFinding struct {
	Socket  string   `json:"socket"`
	PID     int      `json:"pid,omitempty"` // 0 when none runs, or it does not tell
	Version string   `json:"version,omitempty"`
	Remarks []remark `json:"remarks"`
}

// remark is one sentence about a part: daemon, results, log, metrics or traces.
type remark struct {
	About string `json:"about"`
	Text  string `json:"text"`
	// Wrong tells that somebody has to do something about it.
	Wrong bool `json:"wrong,omitempty"`
}

func (d *daemonFinding) note(about, format string, args ...any) {
	d.Remarks = append(d.Remarks, remark{About: about, Text: fmt.Sprintf(format, args...)})
}

func (d *daemonFinding) wrong(about, format string, args ...any) {
	d.Remarks = append(d.Remarks, remark{about, fmt.Sprintf(format, args...), true})
}

// problems counts what is wrong.
func (d daemonFinding) problems() (n int) {
	for _, r := range d.Remarks {
		if r.Wrong {
			n++
		}
	}
	return n
}

// examineDaemon asks the daemon and looks at what it needs. It makes and changes
// nothing, but to connect starts a daemon whose service manager waits for that.
func (a *app) examineDaemon(ctx context.Context) daemonFinding {
	d := daemonFinding{Socket: socketPath(), Remarks: []remark{}}
	waiting := d.examineSocket(ctx)
	state := stateDir()
	if state == "" {
		d.wrong("daemon", "there is no home directory to keep results in; set HOME or XDG_STATE_HOME")
	} else {
		d.examineResults(callsDir(state, d.Socket), waiting)
		d.examineLog(filepath.Join(state, detachedLog))
	}
	if a.metricsAddr != "" {
		d.examineMetrics(ctx, a.metricsAddr)
	}
	d.examineTraces(ctx)
	return d
}

// examineSocket finds out who listens. It returns how many results a daemon keeps for
// clients that have not taken them, -1 without a daemon.
func (d *daemonFinding) examineSocket(ctx context.Context) (waiting int) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" {
		if info, err := os.Stat(runtime); err != nil || !info.IsDir() {
			d.note("daemon", "XDG_RUNTIME_DIR names %s, which is no directory; programs with another one look for the daemon elsewhere", runtime)
		}
	}
	client, err := api.Connect(ctx, d.Socket)
	if errors.Is(err, api.ErrNoDaemon) {
		d.examineLeftSocket()
		return -1
	}
	if err != nil {
		d.wrong("daemon", "%v", err)
		return -1
	}
	client.Close()
	health, err := api.Ask(ctx, d.Socket)
	if err != nil {
		d.wrong("daemon", "%v", err)
		return -1
	}
	d.PID, d.Version = health.PID, health.Version
	d.note("daemon", "process %d listens on %s", health.PID, d.Socket)
	if health.Stopping {
		d.note("daemon", "it was told to end and takes no new work; %d calls are at work", health.Calls.Running)
	}
	if health.Version != version {
		d.note("daemon", "it is pilothouse %s, this is %s; `pilothouse serve --stop` and `pilothouse serve --detach` change it", health.Version, version)
	}
	return health.Calls.Waiting
}

// examineLeftSocket tells what is at the place of the socket when nobody answers.
func (d *daemonFinding) examineLeftSocket() {
	info, err := os.Lstat(d.Socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.note("daemon", "none runs (%s); commands work by themselves", d.Socket)
	case err != nil:
		d.wrong("daemon", "the socket cannot be looked at: %v; name another place with PILOTHOUSE_SOCKET", err)
	case info.Mode()&fs.ModeSocket == 0:
		d.wrong("daemon", "%s is there and no socket; remove it or name another place with PILOTHOUSE_SOCKET", d.Socket)
	default:
		d.note("daemon", "none runs; a killed one has left %s, which `pilothouse serve` replaces", d.Socket)
	}
}

// examineResults tells of results that nobody has fetched. Without a daemon each record
// of a call is one.
func (d *daemonFinding) examineResults(dir string, waiting int) {
	if waiting < 0 {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.wrong("results", "the results of calls cannot be read: %v", err)
			return
		}
		waiting = 0
		for _, entry := range entries {
			if strings.HasSuffix(entry.Name(), ".json") {
				waiting++
			}
		}
	}
	if waiting > 0 {
		d.note("results", "%d of calls were never fetched, and wait a week in %s; `pilothouse runs` has what the rounds stored", waiting, dir)
	}
}

// examineLog tells whether serve --detach could write its log.
func (d *daemonFinding) examineLog(path string) {
	if err := writable(path); err != nil {
		d.wrong("log", "the log of a detached daemon cannot be written (%v); name another file with --log-file", err)
	}
}

// writable tells why a file can be neither written nor made.
func writable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case err == nil:
		err = unix.Access(path, unix.W_OK)
	case errors.Is(err, fs.ErrNotExist):
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
			path = dir
			if info, err = os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
				break
			}
		}
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s is not a directory", path)
		}
		if err == nil {
			err = unix.Access(path, unix.W_OK|unix.X_OK)
		}
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok && err != nil {
		return fmt.Errorf("%s: %w", path, errno)
	}
	return err
}

// examineMetrics tells who listens at an address of --metrics-addr.
func (d *daemonFinding) examineMetrics(ctx context.Context, address string) {
	address, err := metricsAddress(address)
	if err != nil {
		d.wrong("metrics", "%v", err)
		return
	}
	listener, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		_ = listener.Close() // nobody has connected
		d.note("metrics", "%s is free; `pilothouse serve --metrics-addr` serves them there", address)
	case !errors.Is(err, syscall.EADDRINUSE):
		d.wrong("metrics", "nothing can listen at %s: %v", address, err)
	default:
		if other := servedBy(ctx, address); other != "" {
			d.note("metrics", "%s serves those of pilothouse %s", address, other)
		} else {
			d.wrong("metrics", "%s is in use by another program; name another port with --metrics-addr", address)
		}
	}
}

// servedBy is the version of the pilothouse that serves metrics at an address, "" when
// it is another program or does not answer.
func servedBy(ctx context.Context, address string) string {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return ""
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(io.LimitReader(response.Body, 4<<20))
	for lines.Scan() {
		if rest, found := strings.CutPrefix(lines.Text(), `pilothouse_build_info{version="`); found {
			other, _, _ := strings.Cut(rest, `"`)
			return other
		}
	}
	return ""
}

// examineTraces sends the collector that the environment names nothing, as a request.
func (d *daemonFinding) examineTraces(ctx context.Context) {
	if traceVariable("ENDPOINT") == "" {
		return
	}
	if reason := tracingOff(); reason != "" {
		d.note("traces", "none are sent: %s", reason)
		return
	}
	client, err := newOTLPClient()
	if err != nil {
		d.wrong("traces", "none are sent: %v", err)
		return
	}
	client.headers.Del("Content-Encoding") // of an empty body
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	defer client.http.CloseIdleConnections()
	if err := client.post(ctx, nil); err != nil {
		d.wrong("traces", "the collector of OTEL_EXPORTER_OTLP_ENDPOINT takes none (%v); start it, or unset the variable", err)
		return
	}
	d.note("traces", "the collector of OTEL_EXPORTER_OTLP_ENDPOINT takes them")
}
