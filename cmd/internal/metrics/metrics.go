// Package metrics makes Prometheus metrics of what the daemons count. No other package knows
// Prometheus: neither cores and loops, nor anything that job programs link.
//
// Each daemon has a table of families, jobTracker and taskTracker. An entry has a metric's name, type,
// help and labels, and the function that reads its values. docs/monitoring.md has the same table:
//
//	go test ./cmd/internal/metrics -rewrite
//
// A label has few values, which are known before: nothing here is about a single job, user or pool.
// Followers have no metrics of jobs, slots and task trackers, so sums over all job trackers are right.
package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quernmr/quern/meter"
)

// kind is the type of a metric.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// family is a metric. read passes on its values: none if they are not known.
type family[V any] struct {
	name   string
	kind   kind
	labels []string
	help   string
	read   func(v *V, to *samples)
}

// samples takes the values of one family.
type samples struct {
	desc *prometheus.Desc
	kind kind
	out  chan<- prometheus.Metric
}

func (s *samples) add(value float64, labels ...string) {
	valueType := prometheus.GaugeValue
	if s.kind == counter {
		valueType = prometheus.CounterValue
	}
	s.out <- prometheus.MustNewConstMetric(s.desc, valueType, value, labels...)
}

func (s *samples) is(b bool, labels ...string) {
	value := 0.0
	if b {
		value = 1
	}
	s.add(value, labels...)
}

func (s *samples) count(c *meter.Count, labels ...string) { s.add(float64(c.Value()), labels...) }

// times adds a histogram of durations, in seconds.
func (s *samples) times(h *meter.Histogram, labels ...string) {
	s.distribution(h, float64(time.Second), labels...)
}

// distribution adds a histogram of values in parts of a unit.
func (s *samples) distribution(h *meter.Histogram, unit float64, labels ...string) {
	d := h.Distribution()
	buckets, below := make(map[float64]uint64, len(d.Bounds)), uint64(0)
	for i, bound := range d.Bounds {
		below += uint64(d.Counts[i])
		buckets[float64(bound)/unit] = below
	}
	s.out <- prometheus.MustNewConstHistogram(s.desc, uint64(d.Total()), float64(d.Sum)/unit, buckets, labels...)
}

// readWait limits how long a daemon's loop may take for its part of the metrics.
const readWait = 5 * time.Second

// collector collects all families of a daemon.
type collector[V any] struct {
	families []family[V]
	descs    []*prometheus.Desc
	read     func(context.Context) V
}

func newCollector[V any](families []family[V], read func(context.Context) V) *collector[V] {
	c := &collector[V]{families: families, read: read}
	for _, f := range families {
		c.descs = append(c.descs, prometheus.NewDesc(f.name, f.help, f.labels, nil))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector[V]) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector[V]) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readWait)
	defer cancel()
	v := c.read(ctx)
	for i, f := range c.families {
		f.read(&v, &samples{c.descs[i], f.kind, out})
	}
}

// maxScrapes limits the requests that are served at a time.
const maxScrapes = 8

// Handler serves the metrics of a collector, and those of the process and of Go's runtime.
func Handler(log *slog.Logger, c prometheus.Collector) http.Handler {
	return promhttp.HandlerFor(registry(c), promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
	})
}

func registry(c prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Profiles serves the profiles of net/http/pprof, below /debug/pprof/.
func Profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
