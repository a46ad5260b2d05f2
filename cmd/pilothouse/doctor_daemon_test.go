package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	collector "pilothouse/integration/telemetry"
	"pilothouse/supervisor/api"
)

// says checks that the only remark has these words, and whether it is a fault.
func (d *daemonFinding) says(t *testing.T, wrong bool, words ...string) {
	t.Helper()
	if len(d.Remarks) != 1 || d.Remarks[0].Wrong != wrong {
		t.Errorf("%+v, want one remark, wrong %v", d.Remarks, wrong)
		return
	}
	for _, word := range words {
		if !strings.Contains(d.Remarks[0].Text, word) {
			t.Errorf("%q does not say %q", d.Remarks[0].Text, word)
		}
	}
}

// place is a socket path that is short and in a directory of this user alone.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ph")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "api.sock")
}

// listens has a program listen on a socket that answers as a daemon does, until the test ends.
func listens(t *testing.T, socket string, health http.HandlerFunc) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: health, ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-done); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

func answers(version string, protocol int, rest string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"version":%q,"protocol":%d,"pid":4711%s}`, version, protocol, rest)
	}
}

func TestTheDoctorTellsWhatIsAtThePlaceOfTheSocket(t *testing.T) {
	t.Parallel()
	make700 := func(t *testing.T, socket string) { mkdir(t, filepath.Dir(socket), 0o700) }
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, socket string)
		wrong   bool
		words   []string
		waiting int
	}{
		"nothing": {func(*testing.T, string) {}, false, []string{"none runs"}, -1},
		"a daemon": {func(t *testing.T, socket string) {
			make700(t, socket)
			listens(t, socket, answers(version, api.Protocol, `,"calls":{"waiting":3}`))
		}, false, []string{"process 4711 listens on"}, 3},
		"a daemon that speaks another protocol": {func(t *testing.T, socket string) {
			make700(t, socket)
			listens(t, socket, answers("9.9", api.Protocol+1, ""))
		}, true, []string{"pilothouse 9.9", "serve --stop"}, -1},
		"a program that is no daemon": {func(t *testing.T, socket string) {
			make700(t, socket)
			listens(t, socket, http.NotFound)
		}, true, []string{"does not answer", "--local"}, -1},
		"the socket of a killed daemon": {func(t *testing.T, socket string) {
			make700(t, socket)
			left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
			if err != nil {
				t.Fatal(err)
			}
			left.SetUnlinkOnClose(false)
			if err := left.Close(); err != nil {
				t.Fatal(err)
			}
		}, false, []string{"a killed one has left", "serve` replaces"}, -1},
		"a file": {func(t *testing.T, socket string) {
			make700(t, socket)
			writeText(t, socket, "")
		}, true, []string{"no socket", "remove it", "PILOTHOUSE_SOCKET"}, -1},
		"a directory that others can write to": {func(t *testing.T, socket string) { mkdir(t, filepath.Dir(socket), 0o777) },
			true, []string{"other users can write to it (mode 0777)", "PILOTHOUSE_SOCKET"}, -1},
		"a link": {func(t *testing.T, socket string) {
			if err := os.Symlink(t.TempDir(), filepath.Dir(socket)); err != nil {
				t.Fatal(err)
			}
		}, true, []string{"symbolic link", "PILOTHOUSE_SOCKET"}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := daemonFinding{Socket: place(t)}
			tt.prepare(t, d.Socket)
			if waiting := d.examineSocket(t.Context()); waiting != tt.waiting {
				t.Errorf("%d results wait, want %d", waiting, tt.waiting)
			}
			d.says(t, tt.wrong, tt.words...)
			if _, err := os.Lstat(filepath.Dir(d.Socket)); name == "nothing" && !os.IsNotExist(err) {
				t.Errorf("a look made the directory (%v)", err)
			}
		})
	}
}

func TestTheDoctorTellsThatADaemonIsOfAnotherVersionOrEnds(t *testing.T) {
	t.Parallel()
	d := daemonFinding{Socket: place(t)}
	mkdir(t, filepath.Dir(d.Socket), 0o700)
	listens(t, d.Socket, answers("9.9", api.Protocol, `,"stopping":true,"calls":{"running":2}`))
	d.examineSocket(t.Context())
	said := fmt.Sprint(d.Remarks)
	if d.problems() != 0 || d.PID != 4711 || d.Version != "9.9" || !strings.Contains(said, "it is pilothouse 9.9, this is "+version) || !strings.Contains(said, "takes no new work; 2 calls") {
		t.Errorf("%+v", d)
	}
}

func TestTheDoctorCountsResultsThatNobodyFetched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a.json", "b.json", "b.json.tmp"} {
		writeText(t, filepath.Join(dir, name), "{}")
	}
	for waiting, words := range map[int]string{-1: "2 of calls were never fetched", 1: "1 of calls", 0: ""} {
		var d daemonFinding
		d.examineResults(dir, waiting)
		if words == "" {
			if len(d.Remarks) != 0 {
				t.Errorf("%+v", d.Remarks)
			}
			continue
		}
		d.says(t, false, words, dir)
	}
	var d daemonFinding
	d.examineResults(filepath.Join(dir, "none"), -1)
	d.examineResults(filepath.Join(dir, "a.json"), -1)
	d.says(t, true, "cannot be read", "a.json")
}

func TestTheDoctorTellsThatTheLogCannotBeWritten(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	writeText(t, filepath.Join(base, "file"), "")
	for path, reason := range map[string]string{
		"":                      "is a directory",
		"file/daemon.log":       "not a directory",
		"file/state/daemon.log": "not a directory",
		"file":                  "",
		"new/state/daemon.log":  "",
	} {
		var d daemonFinding
		d.examineLog(filepath.Join(base, path))
		if reason == "" {
			if len(d.Remarks) != 0 {
				t.Errorf("%s: %+v", path, d.Remarks)
			}
			continue
		}
		d.says(t, true, reason, base, "--log-file")
	}
	if _, err := os.Stat(filepath.Join(base, "new")); !os.IsNotExist(err) {
		t.Errorf("a look made the directory (%v)", err)
	}
}

func TestTheDoctorTellsWhoHasThePortOfTheMetrics(t *testing.T) {
	t.Parallel()
	ours, err := serveMetrics("0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ours.close)
	other, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	port := func(a net.Addr) string { _, port, _ := net.SplitHostPort(a.String()); return port }
	for name, tt := range map[string]struct {
		address string
		wrong   bool
		words   string
	}{
		"ours":     {port(ours.address), false, "serves those of pilothouse " + version},
		"another":  {port(other.Addr()), true, "in use by another program; name another port"},
		"free":     {"0", false, "is free"},
		"nonsense": {"here", true, "neither a port nor an address"},
		"not ours": {"192.0.2.1:9464", true, "nothing can listen"},
	} {
		t.Run(name, func(t *testing.T) {
			var d daemonFinding
			d.examineMetrics(t.Context(), tt.address)
			d.says(t, tt.wrong, tt.words)
		})
	}
}

func TestTheDoctorTellsWhetherTheCollectorTakesTraces(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		endpoint string
		wrong    bool
		words    string
	}{
		"takes them": {collector.Collect(t).Endpoint, false, "takes them"},
		"refuses":    {collector.Refuse(t, http.StatusForbidden).Endpoint, true, "403"},
		"is gone":    {"http://" + gone.Addr().String(), true, "refused"},
		"nonsense":   {"http://[::1", true, "OTEL_EXPORTER_OTLP_ENDPOINT is not the URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", tt.endpoint)
			t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
			var d daemonFinding
			d.examineTraces(t.Context())
			d.says(t, tt.wrong, tt.words)
		})
	}
	t.Run("hangs", func(t *testing.T) {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.Hang(t).Endpoint)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // it has a bound of its own, which is longer
		defer cancel()
		var d daemonFinding
		d.examineTraces(ctx)
		d.says(t, true, "deadline exceeded")
	})
	t.Run("is not asked for", func(t *testing.T) {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
		var d daemonFinding
		d.examineTraces(t.Context())
		if len(d.Remarks) != 0 {
			t.Errorf("%+v", d.Remarks)
		}
	})
	t.Run("is turned off", func(t *testing.T) {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
		t.Setenv("OTEL_SDK_DISABLED", "true")
		var d daemonFinding
		d.examineTraces(t.Context())
		d.says(t, false, "OTEL_SDK_DISABLED")
	})
}

func mkdir(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
