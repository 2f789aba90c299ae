package pages

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

// largeAPI has as many jobs, attempts and explanations as a page reads, and a job of 100,000 tasks.
func largeAPI() fakeAPI {
	jobs := make([]web.Job, maxJobs)
	var plans []web.Explanation
	for i := range jobs {
		j := web.Job{ID: fmt.Sprintf("job_7_%04d", i+1), Name: "words", Owner: "ann", State: "succeeded", Maps: web.Tasks{Total: 100, Done: 100}, Submitted: testNow.Add(-time.Minute), ElapsedMillis: 60_000, Settings: web.Settings{Pool: "default"}}
		if i < 100 {
			j.State, j.Prediction = "running", &web.Prediction{EarliestMillis: 70_000, LikelyMillis: 80_000, LatestMillis: 100_000}
			plans = append(plans, web.Explanation{Job: j.ID, Phases: []web.Phase{{Phase: "map", Tasks: 100, Target: 4, Place: i + 1, Of: 100, End: testNow.Add(time.Minute)}, {Phase: "reduce", Tasks: 1}}})
		}
		jobs[i] = j
	}
	large := jobs[0]
	large.Maps.Total = 100_000
	attempts := func(n int) (all []web.Attempt) {
		for i := range n {
			all = append(all, web.Attempt{
				ID: fmt.Sprintf("attempt_7_0001_m_%06d_1000", i), Tracker: "t1", Addr: "host:7500", State: "succeeded", Level: "node-local",
				Launched: testNow.Add(time.Duration(-i-6000) * 50 * time.Millisecond), Began: testNow.Add(time.Duration(-i-5999) * 50 * time.Millisecond), TookMillis: int64(1000 + i%777), Bytes: web.Bytes{Done: 1 << 20, Total: 1 << 20},
			})
		}
		return all
	}
	trackers := make([]web.Tracker, 1000)
	for i := range trackers {
		trackers[i] = web.Tracker{ID: fmt.Sprint("t", i), Host: "host", MapSlots: 8, ReduceSlots: 4, Connected: true}
	}
	histories := make([]web.History, maxHistories)
	for i := range histories {
		histories[i].Job = jobs[len(jobs)-1-i]
	}
	return fakeAPI{
		"/v1/cluster":                   web.Cluster{ID: "c", IsLeader: true, Trackers: trackers, Jobs: 100},
		"/v1/jobs":                      web.Page[web.Job]{Items: jobs},
		"/v1/explain":                   web.Page[web.Explanation]{Items: plans},
		"/v1/plans":                     largePlans(jobs[:100]),
		"/v1/attempts":                  web.Recent{Since: testNow.Add(-time.Hour), Items: []web.RecentJob{{Job: large.ID, Attempts: attempts(6000)}}},
		"/v1/histories":                 web.Histories{Items: histories},
		"/v1/jobs/job_7_0001":           large,
		"/v1/jobs/job_7_0001/explain":   plans[0],
		"/v1/jobs/job_7_0001/breakdown": largeBreakdown(attempts(20)),
	}
}

// largeBreakdown has as many values as a breakdown can have.
func largeBreakdown(slow []web.Attempt) web.Breakdown {
	maps := web.PhaseBreakdown{Phase: "map", Tasks: 6000, LeastMillis: 1000, MedianMillis: 1400, MostMillis: 1777, Slow: slow}
	for i := range 24 {
		maps.Buckets = append(maps.Buckets, web.TimeBucket{FromMillis: int64(1000 + 33*i), ToMillis: int64(1033 + 33*i), Tasks: 250})
	}
	b := web.Breakdown{Phases: []web.PhaseBreakdown{maps}}
	for i := range 128 {
		b.Curve = append(b.Curve, web.CurvePoint{At: testNow.Add(time.Duration(i-128) * time.Second), Read: int64(i) << 30})
	}
	return b
}

// largePlans has ten minutes of samples, one each second.
func largePlans(jobs []web.Job) (p web.Plans) {
	for _, phase := range []string{"map", "reduce"} {
		one := web.PlannedPhase{Phase: phase}
		const samples = 600
		for i := range samples {
			one.Times, one.Slots = append(one.Times, testNow.Add(time.Duration(i-samples)*time.Second)), append(one.Slots, 8000)
		}
		one.Others = web.PlannedOthers{Planned: make([]int, samples), Used: make([]int, samples)}
		for i := range jobs {
			j := web.PlannedJob{Job: jobs[i].ID}
			for k := range samples {
				j.Planned, j.Used = append(j.Planned, 10+(k+i)%7), append(j.Used, 10+(k+i)%5)
			}
			one.Jobs = append(one.Jobs, j)
		}
		p.Items = append(p.Items, one)
	}
	return p
}

// BenchmarkPages makes each page of a large cluster, with the conversion of the API's answers.
func BenchmarkPages(b *testing.B) {
	api := largeAPI()
	for _, path := range []string{"/", "/jobs", "/jobs/job_7_0001", "/scheduler", "/history"} {
		b.Run(path[1:]+"page", func(b *testing.B) {
			h := newHandler(api, func() time.Time { return testNow })
			size := 0
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
				size = w.Body.Len()
			}
			b.ReportMetric(float64(size)/1024, "KiB")
		})
	}
}
