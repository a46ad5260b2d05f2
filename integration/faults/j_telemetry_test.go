package faults_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/integration/telemetry"
	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/supervisor"
)

// Section J: metrics and tracing. The alarms (J118) are in integration/telemetry,
// series that grow (J116) also in lanes and supervisor.

// exports lets the programs of the scene send traces to a collector.
func (s *scene) exports(c *telemetry.Collector) { s.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.Endpoint) }

// session is the trace that a calling session hands on.
const sessionTrace, sessionSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

func TestFaultJ115AShortCommandLosesNoSpan(t *testing.T) {
	t.Parallel()
	generations(t, func(t *testing.T, pi piharness.Command) {
		s := piScene(t, pi, on(anyTask,
			scriptedmodel.Step{Tool: "read", Args: map[string]any{"path": "oven/oven.go"}},
			scriptedmodel.Step{Text: report}))
		c := telemetry.Collect(t)
		s.exports(c)
		s.setenv("TRACEPARENT", "00-"+sessionTrace+"-"+sessionSpan+"-01")
		s.setenv("SIM_API_KEY", "sk-very-secret")
		s.refine().wait().complete(report)

		const lane = "pilothouse refine > run > round > batch > lane"
		paths := c.Paths()
		for path := range paths { // how many writes make up a group is a matter of time
			if strings.HasSuffix(path, " > checkpoint") {
				paths[path] = 1
			}
		}
		want := map[string]int{
			"pilothouse refine": 1, "pilothouse refine > run": 1, "pilothouse refine > run > checkpoint": 1,
			"pilothouse refine > run > round": 1, "pilothouse refine > run > round > checkpoint": 1,
			"pilothouse refine > run > round > batch": 1, lane: 1, lane + " > attempt": 1,
			lane + " > attempt > chat plain": 2, lane + " > attempt > execute_tool read": 1,
		}
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Errorf("spans by path (-want +got):\n%s", diff)
		}
		for _, span := range c.Spans() {
			if span.Trace != sessionTrace || span.Failed {
				t.Errorf("span %s is of trace %s, failed %v", span.Name, span.Trace, span.Failed)
			}
			if span.Name == "pilothouse refine" && span.Parent != sessionSpan {
				t.Errorf("the command is below span %q, want that of the session", span.Parent)
			}
			told := fmt.Sprint(span)
			for _, secret := range []string{"sk-very-secret", "sk-dummy", s.Dir, s.plan, "oven.go", "forty", "No findings"} {
				if strings.Contains(told, secret) {
					t.Errorf("span %s tells %q: %s", span.Name, secret, told)
				}
			}
			if span.Name == "attempt" {
				a := span.Attributes
				if a["gen_ai.request.model"] != "plain" || a["gen_ai.response.model"] != "plain" || a["gen_ai.agent.name"] != "reviewer" ||
					a["gen_ai.usage.input_tokens"] == "0" || a["gen_ai.usage.output_tokens"] == "0" || a["pilothouse.status"] != "complete" {
					t.Errorf("the attempt has %v", a)
				}
			}
		}
		if r := c.Resource(); r["service.name"] != "pilothouse" || r["service.version"] == "" || r["telemetry.sdk.language"] != "go" {
			t.Errorf("the sender is %v", r)
		}
	})
}

func TestFaultJ115ACommandWithoutLanesSendsItsSpanToo(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	c := telemetry.Collect(t)
	s.exports(c)
	s.setenv("OTEL_SERVICE_NAME", "planning")
	s.command("version").start().wait()
	if o := s.command("refine", "missing.md").start().wait(); o.Code != 2 {
		t.Errorf("a missing plan ended with %d", o.Code)
	}
	if diff := cmp.Diff(map[string]int{"pilothouse version": 1, "pilothouse refine": 1}, c.Paths()); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	for _, span := range c.Spans() {
		if failed := span.Name == "pilothouse refine"; span.Failed != failed {
			t.Errorf("span %s failed: %v", span.Name, span.Failed)
		}
	}
	if name := c.Resource()["service.name"]; name != "planning" {
		t.Errorf("the service is called %q", name)
	}
}

func TestFaultJ115SpansAreSentAfterASignal(t *testing.T) {
	t.Parallel()
	s := stubScene(t, append(prints(t, lanestest.Join(lanestest.Opening(), []string{
		`{"type":"tool_execution_start","toolCallId":"c1","toolName":"read","args":{}}`,
	})...), "--then", "hang")...)
	c := telemetry.Collect(t)
	s.exports(c)
	j := s.refine("--reviewers", "3")
	s.started(3)
	s.eventually("all lanes run a tool", func() bool { return strings.Count(j.Stderr.String(), "tool: read") >= 3 })
	j.Signal(syscall.SIGTERM)
	if o := j.wait(); o.Code != 143 {
		t.Errorf("ended with %d, want 143", o.Code)
	}
	s.cancelled(3)
	count := map[string]int{}
	for _, span := range c.Spans() {
		count[span.Name]++
		ended := slices.Contains([]string{"pilothouse refine", "round", "lane", "attempt", "chat plain", "execute_tool read"}, span.Name)
		if ended != span.Failed {
			t.Errorf("span %s failed: %v", span.Name, span.Failed)
		}
		if span.Name == "lane" && (span.Attributes["pilothouse.status"] != "cancelled" || span.Attributes["error.type"] != "cancelled") {
			t.Errorf("a lane has %v", span.Attributes)
		}
	}
	delete(count, "checkpoint")
	want := map[string]int{"pilothouse refine": 1, "run": 1, "round": 1, "batch": 1, "lane": 3, "attempt": 3, "chat plain": 3, "execute_tool read": 3}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

func TestFaultJ115ACollectorThatDoesNotWorkChangesNothingForTheUser(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	const timeout = 500 * time.Millisecond
	for name, endpoint := range map[string]func(*testing.T) string{
		"never answers":   func(t *testing.T) string { return telemetry.Hang(t).Endpoint },
		"refuses":         func(t *testing.T) string { return telemetry.Refuse(t, http.StatusForbidden).Endpoint },
		"asks for a wait": func(t *testing.T) string { return telemetry.Refuse(t, http.StatusServiceUnavailable).Endpoint },
		"is gone":         func(*testing.T) string { return "http://" + closed.Addr().String() },
		"is nonsense":     func(*testing.T) string { return "http://[::1" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScene(t, prints(t, lanestest.Answer(report)...)...)
			s.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint(t))
			s.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", strconv.FormatInt(timeout.Milliseconds(), 10))
			quiet := s.refine("--progress", "none").wait()
			quiet.complete(report)
			if quiet.Stderr != "" {
				t.Errorf("the user reads:\n%s", quiet.Stderr)
			}
			verbose := s.command("version", "-v").start().wait()
			if n := strings.Count(verbose.Stderr, "export"); verbose.Code != 0 || n == 0 || n > 3 {
				t.Errorf("ended with %d; the log tells %d times of the export:\n%s", verbose.Code, n, verbose.Stderr)
			}
		})
	}
}

func TestFaultJ115ACollectorThatNeverAnswersDelaysTheEndNoMoreThanItsTimeout(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	s := newScene(t, t.TempDir())
	took := func() time.Duration {
		began := time.Now()
		if o := s.command("version").start().wait(); o.Code != 0 {
			t.Errorf("ended with %d:\n%s", o.Code, o.Stderr)
		}
		return time.Since(began)
	}
	alone := took()
	c := telemetry.Hang(t)
	s.exports(c)
	s.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600000") // the end does not wait for ten minutes
	delayed := took()
	if c.Requests() == 0 {
		t.Error("the collector was not asked")
	}
	if delay := delayed - alone; delay > 5*timeout { // the machine may be busy
		t.Errorf("the end came %v later, the bound is %v", delay, timeout)
	}
}

func TestFaultJ115NothingIsExportedUnlessItIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	c := telemetry.Collect(t)
	for _, variable := range []string{"OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=none", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"} {
		name, value, _ := strings.Cut(variable, "=")
		j := s.command("version", "-v")
		j.Cmd.Env = append(slices.Clone(s.Env), "OTEL_EXPORTER_OTLP_ENDPOINT="+c.Endpoint, name+"="+value)
		if o := j.start().wait(); o.Code != 0 || !strings.Contains(o.Stderr, name) {
			t.Errorf("with %s ended with %d, the log does not name it:\n%s", variable, o.Code, o.Stderr)
		}
	}
	s.command("version").start().wait()
	if n := c.Requests(); n != 0 {
		t.Errorf("the collector got %d requests", n)
	}
}

var servedAt = regexp.MustCompile(`url=(http://\S+/metrics)`)

// metricsURL waits until a program with -v has told where it serves its metrics.
func (j *job) metricsURL() string {
	j.s.t.Helper()
	var url string
	j.s.eventually("metrics are served", func() bool {
		if m := servedAt.FindStringSubmatch(j.Stderr.String()); m != nil {
			url = m[1]
		}
		return url != ""
	})
	return url
}

// scrape reads metrics as Prometheus does.
func scrape(url string) (text, format string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", "", err
	}
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), response.Header.Get("Content-Type"), err
}

// holding are the switches of a child that hangs in the middle of its work.
func holding(t *testing.T) []string {
	return append(prints(t, lanestest.Opening()...), "--then", "hang")
}

func TestFaultJ116NoLabelTellsWhichRunPlanOrModelItWas(t *testing.T) {
	t.Parallel()
	s := stubScene(t, holding(t)...)
	j := s.refine("--metrics-addr", "0", "-v", "--reviewers", "3")
	url := j.metricsURL()
	var text string
	s.eventually("three lanes run", func() bool {
		var err error
		if text, _, err = scrape(url); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(text, `pilothouse_lanes_running{role="reviewer"} 3`)
	})
	s.started(3)
	runs := s.runs()
	closed := map[string]bool{}
	for _, name := range []string{"role", "status", "class", "kind", "step", "result", "actor", "version", "le", "quantile", "hook", "outcome", "verdict", "subject", "action", "phase"} {
		closed[name] = true
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	ours := 0
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, "pilothouse_") {
			continue
		}
		ours++
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(line, -1) {
			if !closed[label[1]] {
				t.Errorf("label %s is of no closed set: %s", label[1], line)
			}
		}
		for _, open := range []string{runs[0].Dir.ID, s.Dir, "plain", "general", "bake"} {
			if strings.Contains(line, open) {
				t.Errorf("%q is in %s", open, line)
			}
		}
	}
	if ours < 100 {
		t.Errorf("only %d series of ours:\n%s", ours, text)
	}
	j.Signal(os.Interrupt)
	j.wait()
}

func TestFaultJ117APortThatIsInUseIsToldBeforeAnythingIsStarted(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() }) // after the subtests
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ address, words string }{
		"in use":      {port, "127.0.0.1:" + port + " is in use by another program; name another port"},
		"a host name": {"metrics.example.org:9464", "write its IP address out"},
		"no port":     {"127.0.0.1", "neither a port nor an address with a port"},
		"too large":   {"99999", "neither a port nor an address with a port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScene(t, prints(t, lanestest.Answer(report)...)...)
			for _, j := range []*job{s.refining("--metrics-addr", tt.address), s.command("demo", "--dir", filepath.Join(s.Dir, "demo"), "--metrics-addr", tt.address)} {
				o := j.start().wait()
				if o.Code != 2 || o.Stdout != "" || strings.Count(o.Stderr, "\n") != 1 || !strings.Contains(o.Stderr, tt.words) {
					t.Errorf("ended with %d and\n%s%s", o.Code, o.Stdout, o.Stderr)
				}
			}
			for _, made := range []string{".git/pi_plans", "demo"} {
				if _, err := os.Stat(filepath.Join(s.Dir, made)); !os.IsNotExist(err) {
					t.Errorf("%s was made (%v)", made, err)
				}
			}
		})
	}
}

func TestFaultJ117MetricsAreOfThisMachineUnlessAnAddressIsWrittenOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		address, host string
		open          bool
	}{
		"a port":           {"0", "127.0.0.1", false},
		"a colon and port": {":0", "127.0.0.1", false},
		"localhost":        {"localhost:0", "127.0.0.1", false},
		"loopback":         {"127.0.0.1:0", "127.0.0.1", false},
		"every address":    {"0.0.0.0:0", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScene(t, holding(t)...)
			j := s.refine("--metrics-addr", tt.address, "-v")
			url := j.metricsURL()
			if !strings.HasPrefix(url, "http://"+tt.host) {
				t.Errorf("metrics are at %s", url)
			}
			s.started(1)
			j.Signal(os.Interrupt)
			if o := j.wait(); strings.Contains(o.Stderr, "other machines can read the metrics") != tt.open {
				t.Errorf("the log does not tell who can read the metrics, or tells wrongly:\n%s", o.Stderr)
			}
		})
	}
}

func TestFaultJ117AScrapeInALoopSurvivesTheEnd(t *testing.T) {
	t.Parallel()
	s := stubScene(t, holding(t)...)
	j := s.refine("--metrics-addr", "0", "-v", "--reviewers", "3")
	url := j.metricsURL()
	s.started(3)
	scraped := make(chan struct{})
	var last, format string
	var failure error
	go func() {
		defer close(scraped)
		for {
			text, f, err := scrape(url)
			if err != nil {
				failure = err
				return
			}
			if last == "" { // the first is there before the signal
				j.Signal(syscall.SIGTERM)
			}
			last, format = text, f
		}
	}()
	o := j.wait()
	<-scraped
	if o.Code != 143 {
		t.Errorf("ended with %d, want 143:\n%s", o.Code, o.Stderr)
	}
	if strings.Contains(failure.Error(), "500") {
		t.Errorf("a scrape failed: %v", failure)
	}
	if !strings.HasPrefix(format, "application/openmetrics-text") || !strings.HasSuffix(last, "# EOF\n") {
		t.Errorf("the last scrape is %s and ends with %.40q", format, last[max(0, len(last)-40):])
	}
	for _, name := range []string{"pilothouse_build_info{version=", "go_goroutines ", "process_cpu_seconds_total ", "pilothouse_lanes_total{"} {
		if !strings.Contains(last, name) {
			t.Errorf("a scrape has no %s", name)
		}
	}
	s.cancelled(3)
}

func TestFaultJ117TwoSystemsOfOneProcessDoNotCollide(t *testing.T) {
	t.Parallel()
	for range 2 {
		system, err := supervisor.New(supervisor.Options{Metrics: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := system.Close(ctx); err != nil {
				t.Error(err)
			}
		}()
	}
	registry := prometheus.NewRegistry()
	if _, err := lanes.NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if system, err := supervisor.New(supervisor.Options{Metrics: registry}); err == nil || system != nil {
		t.Errorf("a registry that is taken gives %v, %v", system, err)
	}
}
