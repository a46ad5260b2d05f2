package main

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

var someSpans = []*tracepb.ResourceSpans{{SchemaUrl: "of a test"}}

// answeringWith is a collector that answers with these statuses in turn and keeps the
// requests that it got.
func answeringWith(t *testing.T, statuses ...int) (http.HandlerFunc, *[]*http.Request, *[]*tracepb.TracesData) {
	var requests []*http.Request
	var got []*tracepb.TracesData
	return func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			packed, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = packed
		}
		data, err := io.ReadAll(body)
		message := &tracepb.TracesData{}
		if err != nil || proto.Unmarshal(data, message) != nil {
			t.Errorf("the body cannot be read: %v", err)
		}
		requests, got = append(requests, r), append(got, message)
		if len(requests) <= len(statuses) {
			w.Header().Set("Location", "http://elsewhere.invalid/")
			w.WriteHeader(statuses[len(requests)-1])
		}
	}, &requests, &got
}

func upload(t *testing.T) error {
	t.Helper()
	client, err := newOTLPClient()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Stop(context.Background()) }()
	return client.UploadTraces(context.Background(), someSpans)
}

func TestSpansAreSentAsTheStandardVariablesSay(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string // AT stands for the address of the collector
		path string
	}{
		"an endpoint for all":     {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "AT"}, "/v1/traces"},
		"an endpoint with a path": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "AT/otlp/"}, "/otlp/v1/traces"},
		"an endpoint for traces":  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x.invalid", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "AT/t"}, "/t"},
		"packed":                  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "AT", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, "/v1/traces"},
	} {
		t.Run(name, func(t *testing.T) {
			handle, requests, got := answeringWith(t)
			server := httptest.NewServer(handle)
			defer server.Close()
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20secret, x-other=b=c")
			for name, value := range test.env {
				t.Setenv(name, strings.Replace(value, "AT", server.URL, 1))
			}
			if err := upload(t); err != nil || len(*requests) != 1 {
				t.Fatalf("%d requests, %v", len(*requests), err)
			}
			r := (*requests)[0]
			if r.Method != "POST" || r.URL.Path != test.path || r.Header.Get("Content-Type") != "application/x-protobuf" ||
				r.Header.Get("X-Key") != "a secret" || r.Header.Get("X-Other") != "b=c" {
				t.Errorf("%s %s with %v", r.Method, r.URL.Path, r.Header)
			}
			if spans := (*got)[0].ResourceSpans; len(spans) != 1 || spans[0].SchemaUrl != someSpans[0].SchemaUrl {
				t.Errorf("got %v", spans)
			}
		})
	}
}

func TestASecureCollectorIsKnownByTheAuthorityThatIsNamed(t *testing.T) {
	handle, requests, _ := answeringWith(t)
	server := httptest.NewTLSServer(handle)
	defer server.Close()
	authority := filepath.Join(t.TempDir(), "authority.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(authority, block, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", authority)
	if err := upload(t); err != nil || len(*requests) != 1 {
		t.Errorf("%d requests, %v", len(*requests), err)
	}
}

func TestWhatACollectorCannotTakeNowIsSentAgainAndNothingElse(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
	for name, test := range map[string]struct {
		answers  []int
		requests int
		failure  string
	}{
		"overloaded at first":  {[]int{503, 429, 502}, 4, ""},
		"does not want it":     {[]int{400}, 1, "400"},
		"sends us elsewhere":   {[]int{307}, 1, "307"},
		"has its answer empty": {[]int{204}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			handle, requests, _ := answeringWith(t, test.answers...)
			server := httptest.NewServer(handle)
			defer server.Close()
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
			err := upload(t)
			if len(*requests) != test.requests || (err == nil) != (test.failure == "") {
				t.Fatalf("%d requests, want %d; %v", len(*requests), test.requests, err)
			}
			if err != nil && (!strings.Contains(err.Error(), test.failure) || strings.Contains(err.Error(), "secret")) {
				t.Error(err)
			}
		})
	}
}

func TestAVariableOfTheExporterThatMeansNothingIsNamedAndNotShown(t *testing.T) {
	for name, env := range map[string][2]string{
		"no URL":            {"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:secret"},
		"no scheme of ours": {"OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://secret"},
		"no list":           {"OTEL_EXPORTER_OTLP_HEADERS", "secret"},
		"no escapes":        {"OTEL_EXPORTER_OTLP_HEADERS", "x=%zzsecret"},
		"no file":           {"OTEL_EXPORTER_OTLP_CERTIFICATE", filepath.Join(t.TempDir(), "none")},
		"no pair":           {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", filepath.Join(t.TempDir(), "none")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv(env[0], env[1])
			if _, err := newOTLPClient(); err == nil || !strings.Contains(err.Error(), env[0]) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}
