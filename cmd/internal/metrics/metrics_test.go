package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core/census"
	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/tasktracker"
	"github.com/quernmr/quern/tasktracker/gather"
	"github.com/quernmr/quern/wire"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the table of metrics in docs/monitoring.md")

type fakeLog struct{ commits *meter.Histogram }

func (fakeLog) Stored() (entries, bytes int64)  { return 3, 400 }
func (l fakeLog) CommitTimes() *meter.Histogram { return l.commits }
func (fakeLog) VoterCount() int                 { return 3 }

// fakeJobTracker collects the metrics of a job tracker with these values.
func fakeJobTracker(c *census.Census, err error) prometheus.Collector {
	m := jobtracker.Metrics{
		Leads: c != nil, Census: c, Counts: census.NewCounts(), FailedPlans: new(meter.Count),
		Steps: meter.NewTimes(50 * time.Microsecond), Waits: meter.NewTimes(time.Millisecond), Plans: meter.NewTimes(time.Millisecond),
	}
	m.Steps.AddTime(time.Millisecond)
	m.Steps.AddTime(time.Hour)
	m.Counts.Levels[0].Add(4)
	m.Counts.Levels[wire.NodeLocal].Add(5)
	m.Counts.Attempts[wire.Reduce][census.Lost].Add(6)
	return JobTracker(func(context.Context) (jobtracker.Metrics, error) { return m, err }, fakeLog{meter.NewTimes(time.Millisecond)})
}

func fakeTaskTracker(err error) prometheus.Collector {
	m := tasktracker.Metrics{
		Registered: true, Gathered: &gather.Counts{Times: meter.NewTimes(time.Millisecond)}, Served: new(meter.Count),
		Steps: meter.NewTimes(time.Millisecond), Starts: meter.NewTimes(time.Millisecond),
	}
	m.Census.Slots, m.Census.Running = [2]int{4, 2}, [2]int{3, 1}
	if err != nil {
		m = tasktracker.Metrics{}
	}
	return TaskTracker(func(context.Context) (tasktracker.Metrics, error) { return m, err })
}

// gatherAll returns the series of a collector by the name of their family.
func gatherAll(t *testing.T, c prometheus.Collector) map[string]int {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := make(map[string]int)
	for _, f := range families {
		series[f.GetName()] = len(f.GetMetric())
	}
	return series
}

// TestConventions: the metrics follow Prometheus's conventions, all of the tables are there, and there are
// few series.
func TestConventions(t *testing.T) {
	most := 0
	for name, c := range map[string]struct {
		collector prometheus.Collector
		names     []string
	}{
		"job tracker": {fakeJobTracker(new(census.Census), nil), names(jobTracker)}, "task tracker": {fakeTaskTracker(nil), names(taskTracker)},
	} {
		problems, err := testutil.GatherAndLint(registry(c.collector))
		if err != nil || len(problems) > 0 {
			t.Errorf("%s: %v %v", name, problems, err)
		}
		all := gatherAll(t, c.collector)
		for _, want := range c.names {
			if most += all[want]; all[want] == 0 {
				t.Errorf("%s: no values of %s", name, want)
			}
		}
		if len(all) != len(c.names) {
			t.Errorf("%s: %d metrics, want %d", name, len(all), len(c.names))
		}
	}
	if most > 120 {
		t.Errorf("%d series without buckets: too many", most)
	}
}

func names[V any](all []family[V]) (list []string) {
	for _, f := range all {
		list = append(list, f.name)
	}
	return list
}

// TestValues: values have the units and labels of their metrics.
func TestValues(t *testing.T) {
	x := &census.Census{Late: 2, Unstarted: 90 * time.Second, Phases: [2]census.Phase{{Pending: 7, Slots: 8, Used: 6}, {Slots: 4}}}
	x.Jobs[wire.Running] = 5
	want := `
# HELP quern_attempts_ended_total Attempts that have ended.
# TYPE quern_attempts_ended_total counter
`
	for kind := wire.Setup; kind <= wire.Fence; kind++ {
		for o := range census.Outcomes {
			n := 0
			if kind == wire.Reduce && o == census.Lost {
				n = 6
			}
			want += fmt.Sprintf("quern_attempts_ended_total{kind=%q,outcome=%q} %d\n", kind, o, n)
		}
	}
	want += `
# HELP quern_jobs Jobs that have not ended.
# TYPE quern_jobs gauge
quern_jobs{state="committing"} 0
quern_jobs{state="preparing"} 0
quern_jobs{state="running"} 5
quern_jobs{state="stopping"} 0
quern_jobs{state="waiting"} 0
# HELP quern_jobs_oldest_unstarted_age_seconds Age of the oldest job without any launched map or reduce; 0 if there is none.
# TYPE quern_jobs_oldest_unstarted_age_seconds gauge
quern_jobs_oldest_unstarted_age_seconds 90
# HELP quern_maps_launched_total Maps that were launched, by the distance to their input.
# TYPE quern_maps_launched_total counter
quern_maps_launched_total{locality="node-local"} 5
quern_maps_launched_total{locality="rack-local"} 0
quern_maps_launched_total{locality="remote"} 0
quern_maps_launched_total{locality="unknown"} 4
# HELP quern_slots_used Slots in use.
# TYPE quern_slots_used gauge
quern_slots_used{phase="map"} 6
quern_slots_used{phase="reduce"} 0
`
	err := testutil.CollectAndCompare(fakeJobTracker(x, nil), strings.NewReader(want),
		"quern_attempts_ended_total", "quern_jobs", "quern_jobs_oldest_unstarted_age_seconds", "quern_maps_launched_total", "quern_slots_used")
	if err != nil {
		t.Error(err)
	}
	text := serve(t, fakeJobTracker(x, nil))
	for _, line := range []string{
		`quern_jobtracker_step_seconds_bucket{le="5e-05"} 0`, `quern_jobtracker_step_seconds_bucket{le="0.0016"} 1`,
		`quern_jobtracker_step_seconds_bucket{le="+Inf"} 2`, `quern_jobtracker_step_seconds_sum 3600.001`, `quern_jobtracker_step_seconds_count 2`,
		`quern_log_written_bytes_total 400`, `go_goroutines `, `quern_jobtracker_responding 1`,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("/metrics has no line %s", line)
		}
	}
}

func serve(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(slog.New(slog.DiscardHandler), c).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// TestUnknown: a follower has no metrics of the cluster, and a daemon that does not respond none of its
// loop's.
func TestUnknown(t *testing.T) {
	follower := gatherAll(t, fakeJobTracker(nil, nil))
	for _, name := range []string{"quern_jobs", "quern_slots", "quern_tasktrackers", "quern_jobs_late"} {
		if follower[name] > 0 {
			t.Errorf("a follower has %s", name)
		}
	}
	if follower["quern_jobs_ended_total"] == 0 || follower["quern_log_commit_seconds"] == 0 {
		t.Errorf("a follower has %v", follower)
	}
	stuck := errors.New("stuck")
	if err := testutil.CollectAndCompare(fakeJobTracker(nil, stuck), strings.NewReader(
		"# HELP quern_jobtracker_responding 1 if the job tracker's event loop has answered in time, else 0.\n# TYPE quern_jobtracker_responding gauge\nquern_jobtracker_responding 0\n",
	), "quern_jobtracker_responding"); err != nil {
		t.Error(err)
	}
	if all := gatherAll(t, fakeTaskTracker(stuck)); len(all) != 2 || all["quern_tasktracker_responding"] != 1 {
		t.Errorf("a task tracker that does not respond has %v", all)
	}
}

// described is what the monitoring files may use.
type described struct {
	kind   kind
	labels []string
}

// known metrics: ours, and those of others that the files use.
func allMetrics() map[string]described {
	all := map[string]described{
		"up": {gauge, nil}, "process_resident_memory_bytes": {gauge, nil}, "process_cpu_seconds_total": {counter, nil},
	}
	for _, f := range jobTracker {
		all[f.name] = described{f.kind, f.labels}
	}
	for _, f := range taskTracker {
		all[f.name] = described{f.kind, f.labels}
	}
	return all
}

var (
	metricName = regexp.MustCompile(`\b(?:quern|process|go)_[a-z_]+\b|\bup\b`)
	matchers   = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"([^"]*)"`)
	grouping   = regexp.MustCompile(`(?:by|ignoring) \(([^)]*)\)`)
)

// checkQuery checks that a query uses only metrics and labels that exist, and counters only by their
// rates.
func checkQuery(query string, all map[string]described) error {
	labels := []string{"instance", "job", "le"}
	found := metricName.FindAllString(query, -1)
	if len(found) == 0 {
		return errors.New("it has no metric")
	}
	for _, name := range found {
		m, ok := all[name]
		if base, cut := strings.CutSuffix(name, "_bucket"); cut && all[base].kind == histogram {
			m, ok = described{counter, all[base].labels}, true
		}
		labels = append(labels, m.labels...)
		switch rate := regexp.MustCompile(`(?:rate|increase)\(` + name + `\b`); {
		case !ok:
			return fmt.Errorf("there is no metric %s", name)
		case m.kind == histogram:
			return fmt.Errorf("%s is a histogram: use its buckets", name)
		case m.kind == counter && !rate.MatchString(query):
			return fmt.Errorf("%s is a counter: use its rate", name)
		case m.kind == gauge && rate.MatchString(query):
			return fmt.Errorf("%s is a gauge: it has no rate", name)
		}
	}
	for _, m := range matchers.FindAllStringSubmatch(query, -1) {
		own := append([]string{"instance", "job", "le"}, all[strings.TrimSuffix(m[1], "_bucket")].labels...)
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(own, label[1]) {
				return fmt.Errorf("%s has no label %s", m[1], label[1])
			}
		}
	}
	for _, by := range grouping.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(by[1], ",") {
			if !slices.Contains(labels, strings.TrimSpace(label)) {
				return fmt.Errorf("no metric of the query has the label %s", label)
			}
		}
	}
	return nil
}

// TestFiles: the dashboard and the alert rules use metrics that exist, each alert is explained, and
// Prometheus's configuration has the names in the daemons' certificates.
func TestFiles(t *testing.T) {
	all := allMetrics()
	for _, bad := range []string{"quern_nothing", "quern_jobs_ended_total", "rate(quern_jobs[1m])", "quern_task_seconds", `quern_jobs{phase="map"}`, "sum by (phase) (quern_jobs)", "1 > 0"} {
		if checkQuery(bad, all) == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	used := make(map[string]bool)
	check := func(file string, queries []string, least int) {
		if len(queries) < least {
			t.Errorf("%s: %d queries were found", file, len(queries))
		}
		for _, q := range queries {
			if err := checkQuery(q, all); err != nil {
				t.Errorf("%s: %s: %v", file, q, err)
			}
			for _, name := range metricName.FindAllString(q, -1) {
				used[strings.TrimSuffix(name, "_bucket")] = true
			}
		}
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../../../docs/monitoring/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, p := range dashboard.Panels {
		for _, x := range p.Targets {
			queries = append(queries, strings.ReplaceAll(x.Expr, "$__rate_interval", "5m"))
		}
	}
	check("dashboard.json", queries, 50)
	rules := read(t, "../../../docs/monitoring/rules.yml")
	queries = nil
	for _, m := range regexp.MustCompile(`(?m)^ +expr: (?:>-\n((?: {10}.*\n)+)|(.*))`).FindAllStringSubmatch(rules, -1) {
		queries = append(queries, m[1]+m[2])
	}
	check("rules.yml", queries, 10)
	for name := range all {
		if strings.HasPrefix(name, "quern_") && !used[name] && name != "quern_build_info" {
			t.Errorf("neither the dashboard nor a rule shows %s", name)
		}
	}
	page := read(t, "../../../docs/monitoring.md")
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		if !strings.Contains(page, "| `"+m[1]+"` |") {
			t.Errorf("docs/monitoring.md does not explain %s", m[1])
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPage: docs/monitoring.md has the tables of metrics.
func TestPage(t *testing.T) {
	const file, begin, end = "../../../docs/monitoring.md", "<!-- metrics -->\n", "<!-- end of metrics -->\n"
	page := read(t, file)
	before, rest, ok := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the tables", file)
	}
	want := before + begin + "\nOf a job tracker:\n\n" + table(jobTracker) + "\nOf a task tracker:\n\n" + table(taskTracker) + "\n" + end + after
	if *rewrite {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if page != want {
		t.Errorf("%s is out of date: go test ./cmd/internal/metrics -rewrite", file)
	}
}

func table[V any](all []family[V]) string {
	b := new(strings.Builder)
	b.WriteString("| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n")
	for _, f := range all {
		labels := ""
		for _, l := range f.labels {
			labels += ", `" + l + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.name, f.kind, strings.TrimPrefix(labels, ", "), f.help)
	}
	return b.String()
}

// BenchmarkScrape measures a scrape without the daemon's loop: collecting and encoding.
func BenchmarkScrape(b *testing.B) {
	h := Handler(slog.New(slog.DiscardHandler), fakeJobTracker(new(census.Census), nil))
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	size := 0
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		size = w.Body.Len()
	}
	b.ReportMetric(float64(size), "bytes")
}
