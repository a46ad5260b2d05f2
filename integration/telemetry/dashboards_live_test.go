package telemetry_test

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/integration/telemetry"
)

// operated is a daemon with real Pi lanes, seen by a real Prometheus and a collector.
type operated struct {
	t         *testing.T
	workspace string
	env       []string
	daemon    *process
	metrics   string // its URL
	seen      *scraper
	traces    *telemetry.Collector
	gate      *gate
}

func operate(t *testing.T, rules ...scriptedmodel.Rule) *operated {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not on PATH; it is in the package prometheus of Debian")
	}
	model, err := scriptedmodel.Start(scriptedmodel.Options{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	o := &operated{t: t, workspace: piharness.Repo(t), traces: telemetry.Collect(t), gate: newGate(t, model.BaseURL())}
	agentDir := filepath.Join(t.TempDir(), "agent")
	if err := scriptedmodel.AgentDir(agentDir, o.gate.baseURL); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.workspace, "plan.md"), []byte("# Bake more bread\n\n## Items\n- I-001 Bake forty loaves a day.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.env = piharness.Env(t, agentDir)
	for _, entry := range o.env {
		if home, found := strings.CutPrefix(entry, "HOME="); found {
			runtime := filepath.Join(home, "runtime")
			if err := os.Mkdir(runtime, 0o700); err != nil {
				t.Fatal(err)
			}
			o.env = append(o.env, "XDG_RUNTIME_DIR="+runtime)
		}
	}
	o.env = append(o.env, "PILOTHOUSE_PI="+piharness.NewPi(t).String())
	o.daemon = start(t, o.workspace, append(slices.Clone(o.env), "OTEL_EXPORTER_OTLP_ENDPOINT="+o.traces.Endpoint),
		piharness.Binary(t), "serve", "--metrics-addr", "0")
	o.metrics = o.daemon.says(`url=(http://\S+/metrics)`)
	o.daemon.says(`(daemon listens)`)
	o.seen = scraping(t, program, strings.TrimSuffix(strings.TrimPrefix(o.metrics, "http://"), "/metrics"))
	// A counter grows by what Prometheus has seen it grow, so it has to see zero first.
	eventually(t, "the daemon is scraped", func() bool { return len(o.seen.query(`pilothouse_lanes_total{role="reviewer"}`)) > 0 })
	return o
}

func (o *operated) refine() *process {
	o.t.Helper()
	return start(o.t, o.workspace, o.env, piharness.Binary(o.t), "refine", "plan.md", "--reviewers", "3", "--model", "sim/plain", "--progress", "none")
}

// running waits until Prometheus has seen that many reviewers at once.
func (o *operated) running(n float64) {
	o.t.Helper()
	eventually(o.t, "the lanes are seen", func() bool {
		return o.seen.by("role", `sum by (role) (pilothouse_lanes_running{job="pilothouse"})`)["reviewer"] == n
	})
}

// linted has promtool read the metrics of the daemon.
func (o *operated) linted() {
	o.t.Helper()
	page, err := get(o.metrics, plainText)
	if err != nil {
		o.t.Fatal(err)
	}
	promtool := exec.Command("promtool", "check", "metrics") // comes with prometheus
	promtool.Stdin = strings.NewReader(page)
	if out, err := promtool.CombinedOutput(); err != nil {
		o.t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// gate stands before a model and lets requests through once it is open.
type gate struct {
	baseURL string
	open    func()
}

func newGate(t *testing.T, model string) *gate {
	t.Helper()
	at, err := url.Parse(model)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	through := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: at.Scheme, Host: at.Host}) },
		Transport: transport, FlushInterval: -1,
	}
	opened := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // the server sees only then that the client is gone
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case <-opened:
			through.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	return &gate{server.URL + at.Path, sync.OnceFunc(func() { close(opened) })}
}

const review = "## Findings\n\nNo findings.\n\n## Checked\n\n- the oven"

// empty are the panels that show nothing as long as all is well, or nothing happens.
var empty = []string{
	"overview.json: Failures by class", "overview.json: Panics of actors",
	"overview.json: Hooks by outcome", "overview.json: Hook duration", // of Pi sessions with the extension
}

// grafana puts in what Grafana would.
var grafana = strings.NewReplacer("$instance", ".*", "$__rate_interval", "1m", "$window", "30m")

func TestARealPrometheusAnswersWhatDashboardsAndRulesAskOfRealPiLanes(t *testing.T) {
	t.Parallel()
	// The provider is down for as long as one pi tries, so that a lane tries again.
	down := scriptedmodel.Step{Status: 503, Message: "overloaded", Times: 4, Then: &scriptedmodel.Step{Text: review}}
	o := operate(t, scriptedmodel.Rule{Match: ".", Steps: []scriptedmodel.Step{down}})
	client := o.refine()
	o.running(3)
	o.gate.open()
	if code := client.Wait().Code; code != 0 {
		t.Fatalf("the round ended with %d:\n%s", code, client.Stderr.String())
	}
	eventually(t, "the end of the round is seen", func() bool {
		return o.seen.by("result", `sum by (result) (pilothouse_rounds_total)`)["complete"] == 1
	})

	if got := o.seen.by("role", `sum by (role) (max_over_time(pilothouse_lanes_running{job="pilothouse"}[30m]))`); got["reviewer"] != 3 || got["criticizer"] != 0 {
		t.Errorf("lanes by role: %v", got)
	}
	rules := o.seen.expressions()
	if got := o.seen.by("role", rules["role:pilothouse_lane_duration_seconds:p95_30m"])["reviewer"]; !(got > 0 && got <= 3600) {
		t.Errorf("p95 of the duration of reviewers is %v s", got)
	}
	if got := o.seen.query(rules["instance:pilothouse_lane_retries:per_lane_30m"]); len(got) != 1 || got[0].value <= 0 {
		t.Errorf("retries per lane: %v", got)
	}
	if got := o.seen.query(rules["instance:pilothouse_cost_usd:increase_1h"]); len(got) != 1 || got[0].value <= 0 {
		t.Errorf("dollars in an hour: %v", got)
	}
	for name, expr := range rules {
		o.seen.query(expr)
		if strings.Contains(name, ":") && len(finite(o.seen.query(expr))) == 0 {
			t.Errorf("%s records nothing", name)
		}
	}
	for panel, exprs := range queries(t) {
		for _, expr := range exprs {
			if slices.Contains(empty, panel) {
				o.seen.query(grafana.Replace(expr))
				continue
			}
			// A gauge is gone while a scrape has failed, as one may on a busy machine.
			eventually(t, panel+" shows "+expr, func() bool { return len(finite(o.seen.query(grafana.Replace(expr)))) > 0 })
		}
	}
	pages := map[string]map[string]bool{}
	for _, metric := range []string{
		"pilothouse_lane_duration_seconds_bucket", "pilothouse_lane_first_event_seconds_bucket",
		"pilothouse_round_duration_seconds_bucket", "pilothouse_checkpoint_write_duration_seconds_bucket",
	} {
		if pages[metric] = o.seen.exemplars(metric); len(pages[metric]) == 0 {
			t.Errorf("%s points to no trace", metric)
		}
	}
	o.linted()
	o.daemon.terminate()
	if code := o.daemon.Wait().Code; code != 0 {
		t.Errorf("the daemon ended with %d:\n%s", code, o.daemon.Stderr.String())
	}
	traces := map[string]bool{}
	for _, span := range o.traces.Spans() {
		traces[span.Trace] = true
	}
	for metric, exemplars := range pages {
		for trace := range exemplars {
			if !traces[trace] {
				t.Errorf("%s points to the trace %s, the collector has %v", metric, trace, traces)
			}
		}
	}
	eventually(t, "the daemon is missed", func() bool {
		down := o.seen.query(`up{job="pilothouse"} == 0`)
		return len(down) == 1
	})
}

// finite are the samples that can be drawn.
func finite(samples []sample) []sample {
	return slices.DeleteFunc(samples, func(s sample) bool { return math.IsNaN(s.value) || math.IsInf(s.value, 0) })
}

func TestAScrapeInALoopSurvivesTheEndOfADaemonWithRealPiLanes(t *testing.T) {
	t.Parallel()
	o := operate(t)
	client := o.refine()
	o.running(3) // they wait for the model
	before, err := get(o.metrics, openMetrics)
	if err != nil {
		t.Fatal(err)
	}
	var scraping sync.WaitGroup
	var broken []string
	scraping.Go(func() {
		for {
			page, err := get(o.metrics, openMetrics)
			if err != nil { // the daemon is gone
				return
			}
			if !strings.HasSuffix(page, "# EOF\n") {
				broken = append(broken, page)
			}
		}
	})
	o.daemon.terminate()
	code := o.daemon.Wait().Code
	scraping.Wait()
	if out := o.daemon.Stderr.String(); code != 0 || strings.Contains(out, "panic:") || strings.Contains(out, "DATA RACE") {
		t.Errorf("the daemon ended with %d:\n%s", code, out)
	}
	if client.Wait().Code != 1 || !strings.Contains(client.Stderr.String(), "--resume-round") {
		t.Errorf("the client ended with\n%s", client.Stderr.String())
	}
	if len(broken) > 0 {
		t.Errorf("%d scrapes broke off, the first is\n%s", len(broken), broken[0])
	}
	if !strings.Contains(before, `pilothouse_lanes_running{role="reviewer"} 3`) {
		t.Errorf("a scrape by hand has no three lanes:\n%s", before)
	}
}
