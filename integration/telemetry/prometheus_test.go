package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pilothouse/integration/piharness"
)

// patience ends what hangs; no assertion depends on it.
const patience = 3 * time.Minute

// eventually waits until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not in %v: %s", patience, what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// process is a program at work that the test ends. Both of its streams are in Stderr.
type process struct {
	*piharness.Program
	t *testing.T
}

func start(t *testing.T, dir string, env []string, command ...string) *process {
	t.Helper()
	p := &process{piharness.Prepare(t, dir, env, command...), t}
	p.Cmd.Stdout = p.Cmd.Stderr
	p.Begin()
	t.Cleanup(func() {
		if !p.HasEnded() {
			p.terminate()
			p.Wait()
		}
	})
	return p
}

func (p *process) terminate() { p.Signal(syscall.SIGTERM) }

// says waits for what a pattern's first group finds in the output.
func (p *process) says(pattern string) string {
	p.t.Helper()
	var found []string
	eventually(p.t, pattern+" is said", func() bool {
		found = regexp.MustCompile(pattern).FindStringSubmatch(p.Stderr.String())
		return found != nil
	})
	return found[1]
}

// The formats of metrics: what Prometheus asks for, and what promtool reads.
const (
	openMetrics = "application/openmetrics-text;version=1.0.0"
	plainText   = "text/plain"
)

// get reads a page of this machine. A server that is gone is an error.
func get(address, format string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("Accept", format)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// scraper is a real Prometheus with our configuration that scrapes one target.
type scraper struct {
	*process
	url string
}

// scraping starts a Prometheus with the files of deploy/prometheus. Only how often it
// scrapes is ours: a test does not wait for a quarter of a minute. Much less than a
// second is no use, since a scrape may not take longer than the interval.
func scraping(t *testing.T, program, target string) *scraper {
	t.Helper()
	dir := t.TempDir()
	config := read(t, "prometheus.yml")
	hurried := strings.NewReplacer("scrape_interval: 15s", "scrape_interval: 1s", "evaluation_interval: 30s", "evaluation_interval: 1s").Replace(config)
	if hurried == config || strings.Contains(hurried, "15s") || strings.Contains(hurried, "30s") {
		t.Fatalf("the intervals are not where they were:\n%s", config)
	}
	for name, text := range map[string]string{"prometheus.yml": hurried, "rules.yml": read(t, "rules.yml"), "targets.json": fmt.Sprintf(`[{"targets": [%q]}]`, target)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, dir, os.Environ(), program, "--config.file=prometheus.yml", "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0", "--enable-feature=exemplar-storage")
	address := p.says(`msg="Listening on" address=([0-9.:]+)`)
	p.says(`(Server is ready)`)
	return &scraper{p, "http://" + address}
}

// api asks the HTTP API and decodes the data of its answer.
func (p *scraper) api(path string, query url.Values, data any) {
	p.t.Helper()
	body, err := get(p.url+"/api/v1/"+path+"?"+query.Encode(), "application/json")
	if err != nil {
		p.t.Fatal(err)
	}
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Status != "success" {
		p.t.Fatalf("%s %v: %v, %s", path, query, err, body)
	}
	if err := json.Unmarshal(answer.Data, data); err != nil {
		p.t.Fatalf("%s %v: %v, %s", path, query, err, body)
	}
}

// sample is a value with its labels.
type sample struct {
	labels map[string]string
	value  float64
}

// query has the instant values of an expression.
func (p *scraper) query(expr string) []sample {
	p.t.Helper()
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	p.api("query", url.Values{"query": {expr}}, &data)
	var samples []sample
	for _, r := range data.Result {
		text, _ := r.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			p.t.Fatalf("%s: %v", expr, err)
		}
		samples = append(samples, sample{r.Metric, value})
	}
	return samples
}

// by are the values of an expression by one of its labels.
func (p *scraper) by(label, expr string) map[string]float64 {
	p.t.Helper()
	values := map[string]float64{}
	for _, s := range p.query(expr) {
		values[s.labels[label]] = s.value
	}
	return values
}

// expressions are those of the rules that it has read.
func (p *scraper) expressions() map[string]string {
	p.t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Query string }
		}
	}
	p.api("rules", nil, &data)
	all := map[string]string{}
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			all[rule.Name] = rule.Query
		}
	}
	return all
}

// exemplars are the traces that a histogram has pointed to in the last hour.
func (p *scraper) exemplars(metric string) map[string]bool {
	p.t.Helper()
	var data []struct {
		Exemplars []struct{ Labels map[string]string }
	}
	now := time.Now()
	p.api("query_exemplars", url.Values{"query": {metric}, "start": {stamp(now.Add(-time.Hour))}, "end": {stamp(now.Add(time.Minute))}}, &data)
	traces := map[string]bool{}
	for _, series := range data {
		for _, exemplar := range series.Exemplars {
			traces[exemplar.Labels["trace_id"]] = true
		}
	}
	return traces
}

func stamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
