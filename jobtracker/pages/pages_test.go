package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

var testNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fakeAPI answers each path with a value, and other paths with 404.
type fakeAPI map[string]any

func (f fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, ok := f[r.URL.Path]
	if e, isError := v.(*web.Error); isError {
		w.WriteHeader(http.StatusMisdirectedRequest)
		v = e
	} else if !ok {
		w.WriteHeader(http.StatusNotFound)
		v = &web.Error{Code: "not-found", Text: "unknown: " + r.URL.Path}
	}
	json.NewEncoder(w).Encode(v)
}

const hostile = `<script>alert("x")</script><img src=x onerror=alert(1)>`

// hostileAPI has a cluster and a job; each of their texts is HTML with a script.
func hostileAPI() fakeAPI {
	job := web.Job{
		ID: "job_7_0001", Name: hostile, Owner: hostile, State: "running", Error: hostile, WaitReason: hostile, Troubles: []string{hostile},
		Maps: web.Tasks{Total: 4, Done: 3, Running: 1}, Submitted: testNow.Add(-10 * time.Second), ElapsedMillis: 10_000, Prediction: &web.Prediction{EarliestMillis: 18_000, LikelyMillis: 20_000, LatestMillis: 25_000, LateMillis: 5000},
		Counters: map[string]map[string]int64{hostile: {hostile: 5}}, Settings: web.Settings{Pool: hostile, DeadlineMillis: 15_000},
		Flow: "flow_7_0001", HotKeys: []web.HotKey{{Key: hostile, Partition: 3, Share: 0.75}},
		SlotTime:   &web.SlotTime{TotalMillis: 1000, Uses: []web.SlotUse{{Use: "shuffle", Attempts: 1, Millis: 400}, {Use: hostile, Attempts: 1, Millis: 600}}},
		Partitions: &web.PartitionSizes{Total: 4, Known: 4, MedianBytes: 1000, Buckets: []web.SizeBucket{{From: 896, To: 1024, Partitions: 3}, {From: 3584, To: 4096, Partitions: 1}}, Largest: []web.PartitionSize{{Partition: 3, Bytes: 4000}}},
	}
	after := web.Job{ID: "job_7_0002", Name: hostile, Flow: "flow_7_0001", State: "waiting", After: []string{job.ID}}
	attempt := web.Attempt{ID: "attempt_7_0001_m_000001_0", Tracker: hostile, State: "failed", Error: hostile, Level: hostile}
	done := web.Attempt{ID: "attempt_7_0001_m_000002_0", Tracker: "t1", State: "succeeded", TookMillis: 2000, Level: "node-local"}
	runs := web.Attempt{ID: "attempt_7_0001_m_000003_0", Tracker: hostile, State: "running", Began: testNow.Add(-30 * time.Second)}
	slow := runs
	slow.TookMillis = 30_000
	explanation := web.Explanation{
		Job: "job_7_0001", Name: hostile, Pool: hostile, Scheduler: hostile, Holds: []web.Hold{{Reason: hostile}}, Submitted: testNow.Add(-10 * time.Second), Prediction: job.Prediction,
		Phases: []web.Phase{{Phase: "map", Source: hostile, Tasks: 4, Done: 3, Target: 2, Place: 1, Of: 1, End: testNow.Add(time.Minute)}},
	}
	past := web.History{Job: web.Job{ID: "job_7_0000", Name: hostile, State: "succeeded", Error: hostile, ElapsedMillis: 5000, Counters: job.Counters}, Output: hostile, Attempts: []web.Attempt{attempt, done}}
	predicted := func(scheduler string, value float64, end int64) web.WhatIfScheduler {
		return web.WhatIfScheduler{
			Scheduler: scheduler, Current: scheduler == "flex", MeanResponseSeconds: value, MeanStretch: 1.5, LastEndSeconds: 40, Late: 1,
			Metrics: map[string]float64{"sum-tardiness": value, "sum-response": 2 * value}, Jobs: []web.WhatIfJob{{Job: job.ID, EndMillis: end}},
		}
	}
	return fakeAPI{
		"/v1/scheduling/whatif": web.WhatIf{
			At: testNow, Jobs: 1, LeftOut: []web.LeftOutJob{{Job: job.ID, Reason: hostile}},
			Items: []web.WhatIfScheduler{predicted("flex", 12, 20_000), predicted("srpt", 7, 14_000), {Scheduler: hostile, Unknown: hostile}},
		},
		"/v1/cluster": web.Cluster{
			ID: hostile, Scheduling: web.Scheduling{Scheduler: "flex", Metric: "sum-tardiness", Delay: "fixed=3s"}, Admin: true, Leader: hostile, IsLeader: true, NoPlan: hostile, Jobs: 1,
			Trackers: []web.Tracker{{ID: hostile, Host: hostile, MapSlots: 2, Maps: 1, Load: 1.5, Disks: []web.Disk{{Path: hostile, Failed: hostile}, {Path: "/d", Free: 5 << 30, Total: 100 << 30}}, Faults: web.Faults{Fetches: 3}, Excluded: hostile, Trouble: hostile, Rack: hostile}},
			Pools:    web.Pools{Status: hostile, Notes: []string{hostile}, Pools: []web.Pool{{Name: hostile, Max: [2]int{-1, 3}}}},
			Drains:   []web.Drain{{Tracker: hostile, Needs: hostile}}, Exclusions: []web.Exclusion{{Tracker: hostile, By: hostile, Reason: hostile}},
		},
		"/v1/jobs": web.Page[web.Job]{Items: []web.Job{job}},
		"/v1/plans": web.Plans{Items: []web.PlannedPhase{{
			Phase: "map", Times: []time.Time{testNow.Add(-30 * time.Second)}, Slots: []int{2}, Jobs: []web.PlannedJob{{Job: job.ID, Planned: []int{2}, Used: []int{1}}},
			Others: web.PlannedOthers{Planned: []int{0}, Used: []int{1}},
		}}},
		"/v1/attempts":          web.Recent{Since: testNow.Add(-time.Hour), Items: []web.RecentJob{{Job: job.ID, Attempts: []web.Attempt{runs}}}},
		"/v1/explain":           web.Page[web.Explanation]{Items: []web.Explanation{explanation}},
		"/v1/flows/flow_7_0001": web.Flow{ID: "flow_7_0001", Name: hostile, State: "running", Items: []web.Job{job, after}},
		"/v1/jobs/job_7_0001/submission": web.Submission{
			Job: job.ID, ViewACL: hostile, Output: hostile, Key: hostile, Inputs: []web.Input{{Format: hostile, Paths: []string{hostile}}}, Files: map[string]string{hostile: hostile},
			Program: &web.Program{Flags: map[string]string{hostile: hostile}}, Properties: map[string]string{"a.property": "(hidden)", hostile: hostile},
		},
		"/v1/jobs/job_7_0001":          job,
		"/v1/jobs/job_7_0001/attempts": web.Attempts{Items: []web.Attempt{attempt, done, runs}},
		"/v1/jobs/job_7_0001/breakdown": web.Breakdown{
			Phases: []web.PhaseBreakdown{{Phase: "map", Tasks: 1, LeastMillis: 2000, MedianMillis: 2000, MostMillis: 2000, Buckets: []web.TimeBucket{{FromMillis: 2000, ToMillis: 2001, Tasks: 1}}, Slow: []web.Attempt{slow}}, {Phase: "reduce"}},
			Levels: []web.LevelCount{{Level: "node-local", Maps: 1}}, FailedAttempts: 1, Failure: &attempt,
			Curve: []web.CurvePoint{{At: testNow.Add(-time.Minute)}, {At: testNow, Read: 3 << 20, Shuffled: 2 << 20}},
		},
		"/v1/jobs/job_7_0000/breakdown": web.Breakdown{},
		"/v1/jobs/job_7_0001/explain":   explanation,
		"/v1/histories":                 web.Histories{Items: []web.History{past, past, past}, Skipped: []string{hostile}},
		"/v1/jobs/job_7_0000/history":   past,
	}
}

func testHandler(api http.Handler) http.Handler {
	return newHandler(api, func() time.Time { return testNow })
}

func show(t *testing.T, api http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	testHandler(api).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if got := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'self'") {
		t.Errorf("%s: content security policy %q", path, got)
	}
	return w.Code, w.Body.String()
}

// TestHostileTexts checks invariant P1 on every page.
func TestHostileTexts(t *testing.T) {
	tags := regexp.MustCompile(`(?i)<script>|<img|\sstyle=|\son[a-z]+=`)
	for _, path := range []string{
		"/", "/trackers", "/jobs", "/jobs/job_7_0001", "/jobs/job_7_0000", "/jobs/job_7_0001/attempts", "/jobs/job_7_0001/counters", "/jobs/job_7_0001/settings",
		"/flows/flow_7_0001", "/scheduler", "/scheduler/whatif", "/history", "/history/compare?a=job_7_0000&b=job_7_0000", "/jobs/%3Cscript%3E", "/no/%3Cscript%3E",
		"/jobs/job_7_0001/attempts/%3Cscript%3E/stderr", "/jobs?name=%3Cscript%3E&owner=%3Cscript%3E&sort=%3Cscript%3E", "/jobs?name=%3Cscript%3E",
	} {
		_, page := show(t, hostileAPI(), path)
		if found := tags.FindString(strings.ReplaceAll(page, "onerror=alert(1)&gt;", "")); found != "" {
			t.Errorf("%s has %q:\n%s", path, found, page)
		}
		if (path == "/jobs/job_7_0001" || path == "/jobs/job_7_0000") && !strings.Contains(page, "&lt;script&gt;") {
			t.Errorf("%s does not show the job's name", path)
		}
	}
}

func TestPages(t *testing.T) {
	for _, c := range []struct {
		path   string
		status int
		want   []string
	}{
		{"/", 200, []string{"<h1>Cluster</h1>", "1<small> of 2</small>", "/jobs/job_7_0001", "1 in use, 2 planned", "jobs that you may not see", "1 with troubles", "5.0 GiB free", "3 failed fetches"}},
		{"/trackers", 200, []string{"1 task trackers"}},
		{"/trackers?from=x", 400, []string{"want the number of a row"}},
		{"/jobs", 200, []string{"1 jobs", "3/4", `class="known" x="16.67%" y="6" width="33.33%"`, "will be late", "minimizes <strong>sum-tardiness</strong>", `<a href="?sort=name">Job</a>`, "03:04:00"}},
		{"/jobs?sort=name", 200, []string{`aria-sort="ascending"><a href="?down=1&amp;sort=name">`}},
		{"/jobs?sort=age&down=1", 200, []string{`aria-sort="ascending"`}},
		{"/jobs?sort=colour", 400, []string{"jobs can be sorted by age, done, end, name, owner, pool, state"}},
		{"/jobs?since=soon", 400, []string{"want a UTC date such as 2026-01-31"}},
		{"/jobs/job_7_0001", 200, []string{"First failure", "median 2.0 s", "node-local <small>1 of 1", "shuffled <small>2.0 MiB", "wait for their partition", "Those that have run longest", "/jobs/job_7_0001/attempts/attempt_7_0001_m_000001_0/stderr", "miss its deadline by 5.0 s", "15.0 times", "The largest has 4.0 times the median", "reduce 3", "75 %"}},
		{"/jobs/job_7_0001/attempts", 200, []string{"m_000001_0", "m_000002_0", "stderr", "failed"}},
		{"/jobs/job_7_0001/attempts?state=succeeded", 200, []string{"m_000002_0"}},
		{"/jobs/job_7_0000/attempts?after=attempt_7_0001_m_000001_0", 200, []string{"m_000002_0", "First"}},
		{"/jobs/job_7_0001/counters", 200, []string{">5</td>"}},
		{"/jobs/job_7_0001/settings", 200, []string{"a.property", "(hidden)"}},
		{"/jobs/job_7_0000/settings", 200, []string{"not known any more"}},
		{"/jobs/job_9_0001", 404, []string{"unknown: /v1/jobs/job_9_0001"}},
		{"/flows/flow_7_0001", 200, []string{`class="edge"`, "Jobs in order", "job_7_0002"}},
		{"/scheduler", 200, []string{"1 of 1", "job_7_0001", "03:04:15"}},
		{"/scheduler/whatif", 200, []string{`<td class="number best">7</td>`, "Switch<span", "4.0 s", "10.0 s", `<span class="pill late">late</span>`, "sum-response"}},
		{"/history", 200, []string{"Runs of ", "at most 5.0 s"}},
		{"/history/compare?a=job_7_0000&b=job_7_0000", 200, []string{"Median time of a map", "Attempts over time"}},
		{"/history/compare?a=job_7_0000", 400, []string{"choose two jobs"}},
		{"/jobs/job_7_0001/attempts/attempt_7_0001_m_000001_0/stderr", 200, []string{`data-log="/jobs/job_7_0001/attempts/attempt_7_0001_m_000001_0/stderr/text"`}},
		{"/jobs/job_7_0001/attempts/attempt_7_0002_m_000001_0/stderr", 404, []string{"has no attempt"}},
		{"/jobs/job_7_0001/attempts/attempt_7_0001_m_000001_0/stdin", 404, []string{"stdout and stderr"}},
		{"/jobs/job_7_0001/attempts/attempt_7_0001_m_000001_0/stderr/text", 404, []string{"mrsubmit logs job_7_0001 attempt_7_0001_m_000001_0"}},
		{"/nothing", 404, []string{"no such page: /nothing"}},
	} {
		status, page := show(t, hostileAPI(), c.path)
		if status != c.status {
			t.Errorf("%s: status %d, want %d", c.path, status, c.status)
		}
		for _, want := range c.want {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q:\n%s", c.path, want, page)
			}
		}
	}
}

// TestLargeJob: the page of a job with many tasks reads no list of its attempts.
func TestLargeJob(t *testing.T) {
	api := hostileAPI()
	job := api["/v1/jobs/job_7_0001"].(web.Job)
	job.Maps.Total = maxAttempts + 1
	api["/v1/jobs/job_7_0001"] = job
	delete(api, "/v1/jobs/job_7_0001/attempts")
	if _, page := show(t, api, "/jobs/job_7_0001"); !strings.Contains(page, "Those that have run longest") || !strings.Contains(page, "median 2.0 s") || strings.Contains(page, "Attempts over time") {
		t.Error("want running attempts and the breakdown, without attempts over time:\n" + page)
	}
}

// TestFollower: a job tracker that does not lead sends browsers to the leader.
func TestFollower(t *testing.T) {
	api := fakeAPI{
		"/v1/cluster": web.Cluster{Leader: "jt2", Addr: "host2:9001"},
		"/v1/jobs":    &web.Error{Code: "not-leader", Text: "jt2 leads", Leader: "jt2", Addr: "host2:9001"},
	}
	for _, path := range []string{"/", "/jobs?state=failed"} {
		w := httptest.NewRecorder()
		New(api).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := w.Header().Get("Location"); w.Code != http.StatusTemporaryRedirect || got != "http://host2:9001"+path {
			t.Errorf("%s: status %d, Location %q", path, w.Code, got)
		}
	}
}

// TestUnchanged: a browser that has a page gets no second copy.
func TestUnchanged(t *testing.T) {
	h := testHandler(hostileAPI())
	first := httptest.NewRecorder()
	h.ServeHTTP(first, httptest.NewRequest(http.MethodGet, "/jobs", nil))
	r := httptest.NewRequest(http.MethodGet, "/jobs", nil)
	r.Header.Set("If-None-Match", first.Header().Get("ETag"))
	second := httptest.NewRecorder()
	h.ServeHTTP(second, r)
	if second.Code != http.StatusNotModified || second.Body.Len() != 0 {
		t.Errorf("second answer: status %d, %d bytes", second.Code, second.Body.Len())
	}
}

// TestMount: the API keeps its paths and all changes but that of the scheduler's form.
func TestMount(t *testing.T) {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("API")) })
	for path, want := range map[string]bool{"/v1/jobs": true, "/healthz": true, "/metrics": true, "/debug/pprof/": true, "/assets/style.css": false} {
		w := httptest.NewRecorder()
		Mount(api).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := w.Body.String() == "API"; got != want {
			t.Errorf("%s goes to the API: %v", path, got)
		}
	}
	for path, want := range map[string]bool{"/jobs": true, "/v1/cluster/scheduling": true, "/scheduler": false} {
		w := httptest.NewRecorder()
		Mount(api).ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		if got := w.Body.String() == "API"; got != want {
			t.Errorf("POST %s goes to the API: %v", path, got)
		}
	}
}

// TestSizes: all files of the pages together are at most 300 KB.
func TestSizes(t *testing.T) {
	var all int64
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		all += info.Size()
	}
	if all > 300<<10 {
		t.Errorf("the assets have %d bytes", all)
	}
}

// TestCompressed: pages and JSON are compressed for clients that accept it. Events are not, as they must arrive at once.
func TestCompressed(t *testing.T) {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"items": [], "unknown": %q}`, strings.Repeat("long ", 10_000))
	})
	h := Mount(api)
	for path, want := range map[string]string{"/jobs": "gzip", "/assets/style.css": "gzip", "/v1/jobs": "gzip", "/v1/events": ""} {
		for _, accept := range []string{"gzip", ""} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Accept-Encoding", accept)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if got := w.Header().Get("Content-Encoding"); accept == "gzip" && got != want || accept == "" && got != "" {
				t.Errorf("%s for a client that accepts %q: encoding %q", path, accept, got)
			}
		}
	}
}
