package lanestest

import (
	"fmt"
	"sort"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// failer is the part of a test that reports a failure.
type failer interface {
	Helper()
	Fatal(...any)
}

// Samples are the series of a registry as a scraper sees them, by name and labels
// in the form of the text format, their labels in order.
func Samples(t failer, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	samples := map[string]float64{}
	for _, family := range gather(t, registry) {
		for _, m := range family.GetMetric() {
			name, labels := family.GetName(), m.GetLabel()
			switch {
			case m.GetCounter() != nil:
				samples[series(name, labels)] = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				samples[series(name, labels)] = m.GetGauge().GetValue()
			case m.GetHistogram() != nil:
				h := m.GetHistogram()
				samples[series(name+"_count", labels)] = float64(h.GetSampleCount())
				samples[series(name+"_sum", labels)] = h.GetSampleSum()
				for _, b := range h.GetBucket() {
					samples[series(name+"_bucket", labels, fmt.Sprintf("le=%q", fmt.Sprint(b.GetUpperBound())))] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return samples
}

func series(name string, labels []*dto.LabelPair, more ...string) string {
	for _, l := range labels {
		more = append(more, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	if len(more) == 0 {
		return name
	}
	sort.Strings(more)
	return name + "{" + strings.Join(more, ",") + "}"
}

// Value sums the series of a name that have all the labels, each as name="value".
func Value(t failer, registry prometheus.Gatherer, name string, labels ...string) (sum float64) {
	t.Helper()
	for sample, value := range Samples(t, registry) {
		if base, _, _ := strings.Cut(sample, "{"); base == name && hasAll(sample, labels) {
			sum += value
		}
	}
	return sum
}

func hasAll(sample string, labels []string) bool {
	for _, label := range labels {
		if !strings.Contains(sample, label) {
			return false
		}
	}
	return true
}

// Exemplars are the traces that a histogram points to, in order.
func Exemplars(t failer, registry prometheus.Gatherer, name string) (traces []string) {
	t.Helper()
	for _, family := range gather(t, registry) {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, b := range m.GetHistogram().GetBucket() {
				for _, label := range b.GetExemplar().GetLabel() {
					if label.GetName() == "trace_id" {
						traces = append(traces, label.GetValue())
					}
				}
			}
		}
	}
	sort.Strings(traces)
	return traces
}

func gather(t failer, registry prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}
