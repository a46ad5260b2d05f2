package telemetry_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"pilothouse/supervisor"
)

// metrics are the series that a scrape gets: by metric, the values of each label. All
// series exist from the start, so a value that is not here never comes.
type metrics map[string]map[string][]string

// exposed are the metrics of a system and of its process; the program itself adds its
// build.
func exposed(t *testing.T) metrics {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	system, err := supervisor.New(supervisor.Options{Metrics: registry})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := system.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := metrics{"pilothouse_build_info": {"version": nil}}
	for _, family := range families {
		labels := map[string][]string{}
		for _, metric := range family.GetMetric() {
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = append(labels[pair.GetName()], pair.GetValue())
			}
		}
		all[family.GetName()] = labels
	}
	return all
}

var (
	selector = regexp.MustCompile(`\b((?:pilothouse|process|go)_\w+)\b(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
	suffix   = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// target are the labels that Prometheus gives to what it scrapes.
var target = []string{"job", "instance"}

// wrong tells what a query asks for that nothing exposes: a metric, a label of it, or a
// value of that label; and a grouping by a label that none of its metrics has.
func (m metrics) wrong(query string) (problems []string) {
	known := append(slices.Clone(target), "le")
	for _, use := range selector.FindAllStringSubmatch(query, -1) {
		labels, ok := m[use[1]]
		if !ok {
			labels, ok = m[suffix.ReplaceAllString(use[1], "")]
		}
		if !ok {
			problems = append(problems, "nothing exposes "+use[1])
			continue
		}
		for label := range labels {
			known = append(known, label)
		}
		for _, match := range matcher.FindAllStringSubmatch(use[2], -1) {
			values, ok := labels[match[1]]
			switch {
			case slices.Contains(target, match[1]), match[1] == "le":
			case !ok:
				problems = append(problems, use[1]+" has no label "+match[1])
			case values != nil: // the version may be any
				for value := range strings.SplitSeq(match[3], "|") {
					if !slices.Contains(values, value) {
						problems = append(problems, use[1]+" never has "+match[1]+" "+value)
					}
				}
			}
		}
	}
	for _, by := range grouping.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(by[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(known, label) {
				problems = append(problems, "no metric of "+query+" has the label "+label)
			}
		}
	}
	return problems
}

func TestAQueryOfWhatIsNotThereIsFound(t *testing.T) {
	t.Parallel()
	m := metrics{"pilothouse_a_total": {"role": {"reviewer", "other"}}, "pilothouse_b_seconds": {}}
	for query, problems := range map[string]int{
		`sum by (role) (rate(pilothouse_a_total{role=~"reviewer|other", job="x"}[5m]))`:                   0,
		`histogram_quantile(0.5, sum by (instance, le) (rate(pilothouse_b_seconds_bucket{job="x"}[1m])))`: 0,
		`pilothouse_c_total`:                       1,
		`pilothouse_a_total{status="x"}`:           1,
		`pilothouse_a_total{role="critic"}`:        1,
		`pilothouse_a_total{role=~"critic|other"}`: 1,
		`sum by (role) (pilothouse_b_seconds_sum)`: 1,
	} {
		if got := m.wrong(query); len(got) != problems {
			t.Errorf("%s: %q, want %d problems", query, got, problems)
		}
	}
}
