package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// telemetry is what a command tells to others than its user.
type telemetry struct {
	metricsAddr string
	metrics     *metricsServer
	traces      *tracing
}

// startTelemetry begins the trace of a command that can run, and serves its metrics.
func (a *app) startTelemetry(c *cobra.Command) (err error) {
	if a.metricsAddr != "" && !onlyAsks(c) {
		a.local = true // a daemon has metrics of its own
		if a.metrics, err = serveMetrics(a.metricsAddr, a.logger()); err != nil {
			return err
		}
	}
	var ctx context.Context
	ctx, a.traces = startTracing(c.Context(), c.CommandPath(), a.logger())
	c.SetContext(ctx)
	return nil
}

// onlyAsks tells that a command leaves the work, and thus its metrics, to a daemon
// that it starts, ends or examines.
func onlyAsks(c *cobra.Command) bool {
	return c.Name() == "doctor" || slices.ContainsFunc([]string{"detach", "stop"}, func(flag string) bool {
		set, err := c.Flags().GetBool(flag)
		return err == nil && set
	})
}

// endTelemetry ends both with the command. It never fails one.
func (a *app) endTelemetry(status int) {
	a.metrics.close()
	a.traces.end(status)
}

// flushBound is the longest that traces keep a command from its end, whatever the
// collector does. OTEL_EXPORTER_OTLP_TIMEOUT shortens it.
const flushBound = 2 * time.Second

// tracing draws the spans of one command and sends them off. Without an endpoint in
// the environment it does nothing and costs nothing.
type tracing struct {
	provider trace.TracerProvider
	span     trace.Span // of the command
	flush    func(context.Context) error
	bound    time.Duration
	log      *slog.Logger
}

// startTracing sets up what the standard variables describe (OTLP over HTTP:
// OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT and so on, OTEL_TRACES_SAMPLER,
// OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES) and begins the span of the command
// below that of ctx. Traces never fail a command: what is wrong with them is said
// once in the log.
func startTracing(ctx context.Context, command string, log *slog.Logger) (context.Context, *tracing) {
	t := &tracing{provider: noop.NewTracerProvider(), bound: flushTime()}
	t.logTo(log)
	if reason := tracingOff(); reason != "" {
		log.Debug("no traces are exported", "reason", reason)
	} else if err := t.export(ctx); err != nil {
		log.Warn("traces are not exported", "error", err)
	}
	ctx, t.span = t.provider.Tracer("pilothouse").Start(ctx, command)
	return ctx, t
}

// tracingOff says why nothing is to be exported, "" when something is.
func tracingOff() string {
	if off, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED")); off {
		return "OTEL_SDK_DISABLED is set"
	}
	if exporter := os.Getenv("OTEL_TRACES_EXPORTER"); exporter != "" && exporter != "otlp" {
		return fmt.Sprintf("OTEL_TRACES_EXPORTER is %s, and only otlp can be had", exporter)
	}
	if protocol := traceVariable("PROTOCOL"); strings.HasPrefix(protocol, "grpc") {
		return "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and only http can be had"
	}
	if traceVariable("ENDPOINT") == "" {
		return "OTEL_EXPORTER_OTLP_ENDPOINT is not set"
	}
	return ""
}

// traceVariable is a setting of the exporter: that for traces, else that for all.
func traceVariable(name string) string {
	if value := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_" + name); value != "" {
		return value
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_" + name)
}

// flushTime is flushBound, or what the exporter may take for one request, in
// milliseconds, if that is shorter.
func flushTime() time.Duration {
	ms, err := strconv.Atoi(traceVariable("TIMEOUT"))
	if err != nil || ms <= 0 {
		return flushBound
	}
	return min(flushBound, time.Duration(ms)*time.Millisecond)
}

// logTo lets the complaints of the library go to a log, where they are not between
// the lines that a person reads.
func (t *tracing) logTo(log *slog.Logger) {
	if t == nil {
		return
	}
	t.log = log
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	var once sync.Once
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		once.Do(func() { log.Warn("some spans were not exported; further failures are not logged", "error", err) })
	}))
}

// export sets up the exporter.
func (t *tracing) export(ctx context.Context) error {
	client, err := newOTLPClient()
	if err != nil {
		return err
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return fmt.Errorf("set up the exporter: %w", err)
	}
	described, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "pilothouse"), attribute.String("service.version", version)),
		resource.WithFromEnv(), // comes last and wins
	)
	if err != nil {
		return fmt.Errorf("describe this program: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described))
	t.provider = provider
	t.flush = func(ctx context.Context) error {
		err := provider.Shutdown(ctx)
		if err != nil { // a request may still be under way
			over, cancel := context.WithCancel(ctx)
			cancel()
			_ = exporter.Shutdown(over)
		}
		return err
	}
	return nil
}

// spans is where the spans of the command's system go.
func (t *tracing) spans() trace.TracerProvider {
	if t == nil {
		return noop.NewTracerProvider()
	}
	return t.provider
}

// end ends the span of the command and sends off what was drawn, within the bound.
func (t *tracing) end(status int) {
	if t == nil {
		return
	}
	t.span.SetAttributes(attribute.Int("process.exit.code", status))
	if status != exitDone {
		t.span.SetStatus(codes.Error, "")
	}
	t.span.End()
	if t.flush == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.bound)
	defer cancel()
	if err := t.flush(ctx); err != nil {
		t.log.Warn("some spans were not exported before the end", "error", err)
	}
}
