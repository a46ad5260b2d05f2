// Package telemetry gives end-to-end tests a collector of traces, and holds the
// Prometheus rules to what pilothouse really exposes.
package telemetry

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as the collector got it.
type Span struct {
	Trace, ID, Parent string // hexadecimal
	Name              string
	Failed            bool
	Attributes        map[string]string
}

// Collector takes traces over OTLP/HTTP. Its methods may be called at any time.
type Collector struct {
	// Endpoint is what OTEL_EXPORTER_OTLP_ENDPOINT is to be set to.
	Endpoint string

	mu       sync.Mutex
	spans    []Span
	resource map[string]string
	requests int
}

// Collect starts a collector that ends with the test.
func Collect(t testing.TB) *Collector {
	c := &Collector{}
	c.serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			t.Errorf("request to the collector: %v", err)
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	return c
}

// Hang starts a collector that accepts every request and never answers one.
func Hang(t testing.TB) *Collector {
	over := make(chan struct{})
	c := &Collector{}
	c.serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server sees only then that the client is gone
		select {
		case <-r.Context().Done():
		case <-over:
		}
	})
	t.Cleanup(func() { close(over) }) // before the server closes
	return c
}

// Refuse starts a collector that answers every request with a status.
func Refuse(t testing.TB, status int) *Collector {
	c := &Collector{}
	c.serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not now", status) })
	return c
}

func (c *Collector) serve(t testing.TB, handle http.HandlerFunc) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.requests++
		c.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(server.Close)
	c.Endpoint = server.URL
}

// take reads one request. What is posted, ExportTraceServiceRequest, is on the wire
// the same as TracesData.
func (c *Collector) take(r *http.Request) error {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
		return fmt.Errorf("%s %s is not the place for traces", r.Method, r.URL.Path)
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			return err
		}
		body = unzipped
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var traces tracepb.TracesData
	if err := proto.Unmarshal(data, &traces); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range traces.GetResourceSpans() {
		c.resource = attributes(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, Span{
					Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
					Name: s.GetName(), Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR, Attributes: attributes(s.GetAttributes()),
				})
			}
		}
	}
	return nil
}

func attributes(pairs []*commonpb.KeyValue) map[string]string {
	all := map[string]string{}
	for _, pair := range pairs {
		all[pair.GetKey()] = text(pair.GetValue())
	}
	return all
}

func text(value *commonpb.AnyValue) string {
	switch v := value.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		return fmt.Sprint(v.DoubleValue)
	case *commonpb.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	case *commonpb.AnyValue_ArrayValue:
		var items []string
		for _, item := range v.ArrayValue.GetValues() {
			items = append(items, text(item))
		}
		return strings.Join(items, ",")
	}
	return value.String()
}

// Spans are all spans so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Resource describes the sender of the last spans.
func (c *Collector) Resource() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resource
}

// Requests counts the requests so far.
func (c *Collector) Requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

// Paths counts the spans by their name and those above it, outermost first, such as
// "run > round".
func (c *Collector) Paths() map[string]int {
	byID := map[string]Span{}
	spans := c.Spans()
	for _, s := range spans {
		byID[s.ID] = s
	}
	paths := map[string]int{}
	for _, s := range spans {
		path := s.Name
		for above, ok := byID[s.Parent]; ok; above, ok = byID[above.Parent] {
			path = above.Name + " > " + path
		}
		paths[path]++
	}
	return paths
}
