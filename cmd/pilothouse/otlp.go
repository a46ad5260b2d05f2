package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// otlpClient sends spans to a collector as protobuf over HTTP. It stands for
// otlptracehttp of the OpenTelemetry project, which links gRPC for it: that costs
// every command, traced or not, a quarter of its start.
type otlpClient struct {
	endpoint string
	headers  http.Header
	gzip     bool
	timeout  time.Duration // of one export, its repetitions included
	http     http.Client
}

// exportTimeout is the default of OTEL_EXPORTER_OTLP_TIMEOUT.
const exportTimeout = 10 * time.Second

// newOTLPClient reads the standard variables of the OTLP exporter: ENDPOINT, HEADERS,
// TIMEOUT in milliseconds, COMPRESSION, CERTIFICATE, CLIENT_CERTIFICATE and CLIENT_KEY.
// A variable that means nothing is an error, which names it and not its value.
func newOTLPClient() (*otlpClient, error) {
	c := &otlpClient{headers: http.Header{"Content-Type": {"application/x-protobuf"}}, timeout: exportTimeout}
	at, err := url.Parse(traceVariable("ENDPOINT"))
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT is not the URL of a collector, such as http://127.0.0.1:4318")
	}
	if os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		at = at.JoinPath("v1", "traces")
	}
	c.endpoint = at.String()
	for pair := range strings.SplitSeq(traceVariable("HEADERS"), ",") {
		name, value, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		switch {
		case strings.TrimSpace(pair) == "":
		case !found || err != nil:
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS is not a list of name=value with commas between")
		default:
			c.headers.Set(strings.TrimSpace(name), value)
		}
	}
	if ms, err := strconv.Atoi(traceVariable("TIMEOUT")); err == nil && ms > 0 {
		c.timeout = time.Duration(ms) * time.Millisecond
	}
	if c.gzip = traceVariable("COMPRESSION") == "gzip"; c.gzip {
		c.headers.Set("Content-Encoding", "gzip")
	}
	secured, err := collectorTLS()
	if err != nil {
		return nil, err
	}
	// Elsewhere than at the collector named, its headers are nobody's business.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: secured, ForceAttemptHTTP2: true}
	return c, nil
}

// collectorTLS is what CERTIFICATE (of the collector's authority), CLIENT_CERTIFICATE
// and CLIENT_KEY name, nil without them.
func collectorTLS() (*tls.Config, error) {
	authority, certificate, key := traceVariable("CERTIFICATE"), traceVariable("CLIENT_CERTIFICATE"), traceVariable("CLIENT_KEY")
	if authority == "" && certificate == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		pem, err := os.ReadFile(authority)
		if err != nil {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CERTIFICATE: there is no certificate in %s", authority)
		}
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and _CLIENT_KEY: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Start implements otlptrace.Client; connections are made when they are needed.
func (*otlpClient) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *otlpClient) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. It repeats a request that the collector
// cannot take now, until its time is up.
func (c *otlpClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// On the wire a request to export traces is the same message as a file of traces.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	if c.gzip {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(body) // memory cannot fail
		_ = w.Close()
		body = packed.Bytes()
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return backoff.Retry(func() error { return c.post(ctx, body) }, backoff.WithContext(backoff.NewExponentialBackOff(), ctx))
}

func (c *otlpClient) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	req.Header = c.headers.Clone()
	resp, err := c.http.Do(req)
	if err != nil {
		return err // an attempt that cannot connect may be early
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	_ = resp.Body.Close()
	refused := fmt.Errorf("the collector answered %s", resp.Status)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if wait, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && wait > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(wait) * time.Second):
			}
		}
		return refused
	default:
		if resp.StatusCode/100 == 2 {
			return nil
		}
		return backoff.Permanent(refused)
	}
}
