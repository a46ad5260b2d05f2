package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metricsServer serves the metrics of this command while it runs. A nil one serves
// nothing and keeps no metrics.
type metricsServer struct {
	registry *prometheus.Registry
	address  net.Addr
	server   *http.Server
	done     chan struct{} // closed when the server has ended
}

// serveMetrics listens at an address of --metrics-addr and serves /metrics there.
// That it cannot listen is found here, before anything is started.
func serveMetrics(address string, log *slog.Logger) (*metricsServer, error) {
	if address == "" {
		return nil, nil
	}
	address, err := metricsAddress(address)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &usageError{fmt.Errorf("--metrics-addr %s is in use by another program; name another port, or 0 for any free one", address)}
	case err != nil:
		return nil, &usageError{fmt.Errorf("--metrics-addr: %w", err)}
	}
	m := &metricsServer{registry: newRegistry(), address: listener.Addr(), done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, Registry: m.registry}))
	m.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go func() {
		defer close(m.done)
		if err := m.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("metrics are not served any more", "error", err)
		}
	}()
	return m, nil
}

// metricsAddress completes an address: a port alone is of this machine only. Other
// machines are let in by an IP address that is written out, never by a name, which
// may mean anything.
func metricsAddress(address string) (string, error) {
	if _, err := strconv.ParseUint(address, 10, 16); err == nil {
		address = ":" + address
	}
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", &usageError{fmt.Errorf("--metrics-addr %q is neither a port nor an address with a port, such as 9464 or 127.0.0.1:9464", address)}
	}
	switch {
	case host == "" || strings.EqualFold(host, "localhost"):
		return net.JoinHostPort("127.0.0.1", port), nil
	case net.ParseIP(host) == nil:
		return "", &usageError{fmt.Errorf("--metrics-addr %q names a host; write its IP address out to let other machines read the metrics", address)}
	}
	return net.JoinHostPort(host, port), nil
}

// newRegistry has what is true of the whole process. It is never the default
// registry, which others may fill.
func newRegistry() *prometheus.Registry {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "pilothouse_build_info", Help: "Always 1; the version is in the label.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// metrics is the registry for the command's system, nil without a server.
func (m *metricsServer) metrics() *prometheus.Registry {
	if m == nil {
		return nil
	}
	return m.registry
}

// announce tells operators where the metrics are, and who can read them.
func (m *metricsServer) announce(log *slog.Logger) {
	if m == nil {
		return
	}
	log.Info("metrics are served", "url", "http://"+m.address.String()+"/metrics")
	if bound, ok := m.address.(*net.TCPAddr); ok && !bound.IP.IsLoopback() {
		log.Warn("other machines can read the metrics", "address", m.address.String())
	}
}

// close answers what was asked already and ends the server.
func (m *metricsServer) close() {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := m.server.Shutdown(ctx); err != nil {
		_ = m.server.Close()
	}
	<-m.done
}
