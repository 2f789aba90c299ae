package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/wire"
)

// TestRoutes sends a request to each route and checks the text of the answer.
func TestRoutes(t *testing.T) {
	f, c := startOne(t)
	if _, err := c.Submit(t.Context(), submission("k1")); err != nil {
		t.Fatal(err)
	}
	frame, err := wire.Append(nil, new(submission("k2")))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		method, path, kind, body string
		status                   int
		want                     string
	}{
		{"GET", "/v1/jobs", "", "", 200, `{"items":[{"id":"job_7_0001","name":"words","state":"running","maps":{"total":0,`},
		{"GET", "/v1/jobs/job_7_0001", "", "", 200, `{"id":"job_7_0001","name":"words","state":"running"`},
		{"GET", "/v1/jobs/job_7_0009", "", "", 404, `{"type":"https://github.com/quernmr/quern/blob/main/docs/reference.md#error-unknown-job","title":"unknown job","status":404,"detail":"job_7_0009: unknown job","code":"unknown-job"}`},
		{"GET", "/v1/jobs/job_7_1", "", "", 400, `"code":"bad-request"`},
		{"GET", "/v1/jobs/job_7_0001/attempts", "", "", 200, `{"items":[{"id":"attempt_7_0001_m_000000_1000","tracker":"t1","addr":"h1:1","state":"failed","bytes":{"done":1,"total":2},"began":"1970-01-01T00:00:01.234Z","tookMillis":5,"error":"boom"}],"owner":"ann","token":"` + wire.LogToken("secret", "") + `"}`},
		{"GET", "/v1/jobs/job_7_0001/attempts?state=running,failed", "", "", 200, `{"items":[{"id":"attempt_7_0001_m_000000_1000"`},
		{"GET", "/v1/jobs/job_7_0001/attempts?state=running&state=ready", "", "", 200, `{"items":[],"owner":"ann","token":`},
		{"GET", "/v1/jobs/job_7_0001/attempts?state=running,flying", "", "", 400, `query parameter \"state\": want one of running, ready, succeeded, failed, killed, got \"flying\"`},
		{"GET", "/v1/jobs/job_7_0002/attempts", "", "", 404, `"unknown-job"`},
		{"GET", "/v1/jobs/job_7_0001/history", "", "", 200, `"submitted":"1970-01-01T00:00:01Z","ended":"1970-01-01T00:00:02Z","attempts":[{"id":"attempt_7_0001_m_000000_1000","tracker":"t1"`},
		{"GET", "/v1/jobs/job_7_0002/history", "", "", 404, `"no-history"`},
		{"GET", "/v1/histories", "", "", 200, `{"items":[{"id":"job_7_0001","name":"words"`},
		{"GET", "/v1/cluster", "", "", 200, `{"id":"c1","start":"1970-01-01T00:00:00.007Z","staging":"mem://s","epoch":2,"leader":"jt1","addr":"` + f.addr + `","isLeader":true,"admin":true,"jobs":1,"wall":"1970-01-01T00:00:00.099Z","scheduling":{},"pools":{"status":"f.xml","pools":[{"name":"etl","min":[1,0],"max":[-1,2],"weight":2,"maxJobs":-1,"jobs":1,"running":[3,0]}]},"trackers":[{"id":"t1","host":"h1","addr":"h1:1","incarnation":3,"mapSlots":2,"reduceSlots":0,"maps":1,"reduces":0,"memory":{"total":4096,"used":1024},"connected":true,"silentMillis":12,"excluded":"bad"}],"voters":[],"log":{"entries":0,"bytes":0},"limits":[{"name":"jobs","used":4,"max":9}]}`},
		{"GET", "/v1/jobs/job_7_0001/submission", "", "", 200, `{"job":"job_7_0001","flowName":"all","submitted":"1970-01-01T00:00:01Z","viewACL":"bob","program":{"hash":"abc","bytes":4096,"flags":{"api-token":"(hidden)","n":"5"}},"inputs":[{"format":"lines","paths":["mem://in"]},{"format":"binary","from":"job_7_0001"}],"output":"mem://out","format":"text","reduces":0,"key":"","value":"","outKey":"","outValue":"","properties":{"a":"1","db.password":"(hidden)","fs.s3a.encryption.key":"(hidden)","key":"(hidden)","mapreduce.job.redacted-properties":"key,\n\tother\r\n","other":"(hidden)"},"hidden":["db.password","fs.s3a.encryption.key","key","other","api-token"]}`},
		{"GET", "/v1/jobs/job_7_0002/submission", "", "", 404, `"unknown-job"`},
		{"GET", "/v1/jobs/job_7_0001/breakdown", "", "", 200, `{"job":"job_7_0001","phases":[{"phase":"map","running":0,"tasks":0,"leastMillis":0,"medianMillis":0,"mostMillis":0,"meanMillis":0},{"phase":"reduce",`},
		{"GET", "/v1/jobs/job_7_0001/breakdown", "", "", 200, `"failedAttempts":1,"failure":{"id":"attempt_7_0001_m_000000_1000","tracker":"t1"`},
		{"GET", "/v1/jobs/job_7_0001/breakdown", "", "", 200, `"curve":[{"at":"1970-01-01T00:00:01Z","read":5,"shuffled":4,"reduced":3}]`},
		{"GET", "/v1/jobs/job_7_0002/breakdown", "", "", 404, `"no-history"`},
		{"GET", "/v1/flows/flow_7_0009", "", "", 404, `"unknown-job"`},
		{"GET", "/v1/flows/job_7_0001", "", "", 400, `"bad-request"`},
		{"POST", "/v1/submissions", frameType, string(frame), 200, `{"jobs":["job_7_0002"]}`},
		{"POST", "/v1/submissions", frameType, string(frame), 200, `{"jobs":["job_7_0002"]}`},
		{"POST", "/v1/submissions", jsonType, string(frame), 400, "a submission must have the content type"},
		{"POST", "/v1/submissions", frameType, "", 400, "EOF"},
		{"POST", "/v1/submissions", frameType, string(frame) + "x", 400, "bytes follow the frame"},
		{"POST", "/v1/submissions", frameType, string(frame[:9]), 400, "unexpected EOF"},
		{"POST", "/v1/submissions", frameType, "\xff\xff\xff\xff\x15", 413, "frame length out of bounds"},
		{"POST", "/v1/submissions", frameType, "\x00\x00\x00\x02\x17\x80", 400, "got a *wire.Ack"},
		{"POST", "/v1/submissions", frameType, nilJobs(20_000), 413, "message decodes to too much memory: 20017 bytes of a wire.Submission"},
		{"POST", "/v1/submissions", frameType, nilJobs(200_000), 413, "message decodes to too much memory"},
		{"POST", "/v1/jobs/job_7_0002/kill", jsonType, `{"reason":"why not"}`, 200, "{}"},
		{"POST", "/v1/jobs/job_7_0002/kill", jsonType, `{}`, 409, `"detail":"job_7_0002: the job has ended","code":"job-ended"}`},
		{"POST", "/v1/jobs/job_7_0002/kill", jsonType, `{"reasons":1}`, 400, "unknown field"},
		{"POST", "/v1/jobs/job_7_0002/kill", jsonType, "", 400, "EOF"},
		{"POST", "/v1/jobs/job_7_0002/kill", jsonType, `{"reason":"` + strings.Repeat("x", maxBody) + `"}`, 413, "too large"},
		{"GET", "/v1/jobs/job_7_0002", "", "", 200, `"state":"killed"`},
		{"GET", "/v1/jobs/job_7_0001", "", "", 200, `"settings":{"pool":"default","priority":"NORMAL"}`},
		{"POST", "/v1/jobs/job_7_0001/settings", jsonType, `{"priority":"very_high","weight":2,"deadlineMillis":-5,"sla":[],"pool":"p","batch":""}`, 200, "{}"},
		{"GET", "/v1/jobs/job_7_0001", "", "", 200, `"settings":{"pool":"default","priority":"VERY_HIGH"}`},
		{"POST", "/v1/jobs/job_7_0001/settings", jsonType, `{"suspended":true}`, 200, "{}"},
		{"GET", "/v1/jobs/job_7_0001", "", "", 200, `"suspended":true`},
		{"POST", "/v1/jobs/job_7_0001/settings", jsonType, `{}`, 400, `"detail":"the change changes nothing","code":"bad-request","untouched":true}`},
		{"POST", "/v1/jobs/job_7_0001/settings", jsonType, `{"priority":"URGENT"}`, 400, `"detail":"bad job settings: priority \"URGENT\": want one of`},
		{"POST", "/v1/jobs/job_7_0001/settings", jsonType, `{"weight":"heavy"}`, 400, `"code":"bad-request"`},
		{"POST", "/v1/jobs/job_7_0001/settings", jsonType, `{"pool":"nowhere"}`, 400, `"detail":"job_7_0001: bad job settings: pool \"nowhere\" is unknown","code":"bad-settings"}`},
		{"POST", "/v1/jobs/job_7_0002/settings", jsonType, `{"weight":2}`, 409, `"code":"job-ended"`},
		{"POST", "/v1/jobs/job_7_0009/settings", jsonType, `{"weight":2}`, 404, `"code":"unknown-job"`},
		{"POST", "/v1/jobs/job_7_0001/attempts/attempt_7_0001_m_000000_1000/kill", jsonType, `{"reason":"stuck"}`, 200, "{}"},
		{"POST", "/v1/jobs/job_7_0001/attempts/attempt_7_0001_m_000000_1000/fail", jsonType, `{}`, 200, "{}"},
		{"POST", "/v1/jobs/job_7_0001/attempts/attempt_7_0001_m_000001_1000/fail", jsonType, `{}`, 409, `"detail":"attempt_7_0001_m_000001_1000: the attempt is committing its output","code":"attempt-committing"`},
		{"POST", "/v1/jobs/job_7_0001/attempts/attempt_7_0001_m_000001_1001/kill", jsonType, `{}`, 409, `"code":"attempt-ended"`},
		{"POST", "/v1/jobs/job_7_0002/attempts/attempt_7_0001_m_000001_1001/kill", jsonType, `{}`, 400, "attempt_7_0001_m_000001_1001 does not belong to job_7_0002"},
		{"POST", "/v1/jobs/job_7_0001/attempts/task_7_0001_m_000001/kill", jsonType, `{}`, 400, "not an id of an attempt"},
		{"POST", "/v1/jobs/job_7_0001/attempts/attempt_7_0001_m_000000_1000/kill", jsonType, `{"fail":true}`, 400, "unknown field"},
		{"POST", "/v1/cluster/scheduling", jsonType, `{"scheduler":"fair","delay":"fixed=3s"}`, 200, "{}"},
		{"POST", "/v1/cluster/scheduling", jsonType, `{"metric":"max-stretch"}`, 200, "{}"},
		{"GET", "/v1/cluster", "", "", 200, `"scheduling":{"scheduler":"fair","metric":"max-stretch","delay":"fixed=3s"}`},
		{"POST", "/v1/cluster/scheduling", jsonType, `{"scheduler":"best"}`, 400, `"detail":"scheduler \"best\": want one of fifo, fair,`},
		{"POST", "/v1/cluster/scheduling", jsonType, `{}`, 400, "changes nothing"},
		{"POST", "/v1/cluster/scheduling", jsonType, `{"policy":"fair"}`, 400, "unknown field"},
		{"POST", "/v1/cluster/drains", jsonType, `{"tracker":"t1"}`, 200, "{}"},
		{"GET", "/v1/cluster", "", "", 200, `"drains":[{"tracker":"t1","drained":false,"here":true,"needs":"1 attempt"}]`},
		{"POST", "/v1/cluster/drains", jsonType, `{"tracker":"t1","undo":true}`, 200, "{}"},
		{"GET", "/v1/cluster", "", "", 200, `"excluded":"bad"}],"voters":[]`},
		{"POST", "/v1/cluster/drains", jsonType, `{"tracker":"unknown"}`, 404, `"detail":"drain: unknown task tracker \"unknown\"","code":"unknown-tracker"}`},
		{"POST", "/v1/cluster/drains", jsonType, `{"undo":true}`, 400, "the request names no tracker"},
		{"POST", "/v1/cluster/exclusions", jsonType, `{"tracker":"t1","by":"ann","reason":"noisy","millis":5000}`, 200, "{}"},
		{"GET", "/v1/cluster", "", "", 200, `"exclusions":[{"tracker":"t1","operator":true,"by":"ann","reason":"noisy","since":"1970-01-01T00:00:01Z","until":"1970-01-01T00:00:05Z","registered":true}]`},
		{"POST", "/v1/cluster/exclusions", jsonType, `{"tracker":"t1","undo":true}`, 200, "{}"},
		{"POST", "/v1/cluster/exclusions", jsonType, `{"tracker":"unknown"}`, 404, `"detail":"unknown task tracker \"unknown\"","code":"unknown-tracker"}`},
		{"POST", "/v1/cluster/exclusions", jsonType, `{"reason":"noisy"}`, 400, "the request names no tracker"},
		{"POST", "/v1/cluster/exclusions", jsonType, `{"tracker":"t1","undo":true,"millis":5}`, 400, "a readmission has no reason and no time"},
		{"POST", "/v1/cluster/exclusions", jsonType, `{"tracker":"t1","millis":-5}`, 400, "millis must be from 0 to"},
		{"POST", "/v1/cluster/exclusions", jsonType, `{"tracker":"t1","millis":9223372036854775807}`, 400, "millis must be from 0 to"},
		{"POST", "/v1/cluster/exclusions", jsonType, `{"tracker":"t1","reason":"` + strings.Repeat("x", 1001) + `"}`, 400, "at most 1000 bytes, got 1001 and 0"},
		{"POST", "/v1/cluster/voters", jsonType, `{"id":"jt2","addr":"h:2"}`, 200, "{}"},
		{"POST", "/v1/cluster/voters", jsonType, `{"id":"jt2"}`, 400, "a voter needs an id and an addr"},
		{"GET", "/healthz", "", "", 200, `{"id":"jt1","led":true}`},
		{"GET", "/v1/cluster", "", "", 200, `"voters":[{"id":"jt2","addr":"h:2"}]`},
		{"DELETE", "/v1/cluster/voters/jt2", "", "", 200, "{}"},
		{"GET", "/v1/cluster", "", "", 200, `"voters":[]`},
		{"GET", "/v1/events?job=job_7_0001&owner=ann", "", "", 400, "not both"},
		{"GET", "/v1/events?job=x", "", "", 400, "not an id"},
		{"GET", "/v1/attempts", "", "", 200, `{"items":[{"job":"job_7_0001","attempts":[{"id":"attempt_7_0001_m_000000_1000"`},
		{"GET", "/v1/attempts?job=job_7_0001&state=running", "", "", 200, `{"items":[{"job":"job_7_0001","attempts":[{"id":"attempt_7_0001_m_000000_1000"`},
		{"GET", "/v1/attempts?job=job_7_0002&job=job_7_0001&limit=1", "", "", 200, `"limit":1,"truncated":true}`},
		{"GET", "/v1/attempts?job=job_7_0009", "", "", 200, `{"items":[],"since":`},
		{"GET", "/v1/attempts?state=failed,killed", "", "", 200, `{"items":[],"since":`},
		{"GET", "/v1/attempts?tracker=t9", "", "", 200, `{"items":[],"since":`},
		{"GET", "/v1/attempts?job=x", "", "", 400, `query parameter \"job\": `},
		{"GET", "/v1/attempts?state=flying", "", "", 400, `got \"flying\"`},
		{"GET", "/v1/attempts?limit=0", "", "", 400, `want a positive number of attempts, got \"0\"`},
		{"GET", "/v1/plans", "", "", 200, `{"items":[{"phase":"map","since":"1970-01-01T00:00:01Z","times":["1970-01-01T00:00:01Z","1970-01-01T00:00:05Z"],"slots":[9,8],"jobs":[{"job":"job_7_0001","planned":[4,0],"used":[1,0]},`},
		{"GET", "/v1/scheduling/whatif", "", "", 200, `{"at":"1970-01-01T00:00:02Z","tookMillis":70,"scheduling":{"scheduler":"fair"},"jobs":1,"submissions":1,"items":[{"scheduler":"fifo","meanResponseSeconds":4,"lastEndSeconds":3,"late":0,"metrics":{"sum-response":3},"plans":2,"jobs":[{"job":"job_7_0001","end":"1970-01-01T00:00:05Z","endMillis":4000}]},{"scheduler":"fair","current":true,"unknown":"it takes long","late":0}],"leftOut":[{"job":"job_7_0001","reason":"it is suspended"}]}`},
		{"GET", "/v1/explain", "", "", 200, `{"items":[{"job":"job_7_0001"`},
		{"GET", "/v1/jobs/job_7_0001/explain", "", "", 200, `{"job":"job_7_0001"`},
		{"GET", "/v1/openapi.json", "", "", 200, `"openapi": "3.1.0"`},
		{"GET", "/v1/stream", "", "", 426, "for task trackers"},
		{"GET", "/v1/jobs/job_7_0001/kill", "", "", 404, "no such route: GET /v1/jobs/job_7_0001/kill"},
		{"GET", "/", "", "", 404, "no such route"},
		{"PUT", "/v1/jobs", "", "", 404, "no such route"},
	} {
		r, err := http.NewRequest(q.method, "http://"+f.addr+q.path, strings.NewReader(q.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", q.kind)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != q.status || !strings.Contains(string(body), q.want) {
			t.Errorf("%s %s %.40q: %d %s, %v\nwant %d %s", q.method, q.path, q.body, resp.StatusCode, body, err, q.status, q.want)
		}
		checkAnswer(t, q.method, q.path, resp.StatusCode, resp.Header, body)
	}
}

// TestPagesAreRefused: changes with the origin of a web page are refused.
func TestPagesAreRefused(t *testing.T) {
	f, c := startOne(t)
	if _, err := c.Submit(t.Context(), submission("k1")); err != nil {
		t.Fatal(err)
	}
	h := New(Config{Server: f, Voters: f})
	for _, route := range new(handler).routes() {
		method, path, _ := strings.Cut(route.pattern, " ")
		if method == http.MethodGet {
			continue
		}
		r := httptest.NewRequest(method, strings.ReplaceAll(path, "{id}", "job_7_0001"), strings.NewReader("{}"))
		r.Header.Set("Origin", "http://"+r.Host)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", route.pattern, w.Code, w.Body)
		}
	}
	if job, err := c.Job(t.Context(), wire.JobID{Start: 7, N: 1}); err != nil || job.State != "running" {
		t.Errorf("%+v, %v", job, err)
	}
}

// TestSentinels: an error has the same sentinel at the client as at the job tracker.
func TestSentinels(t *testing.T) {
	for _, k := range errorKinds() {
		if k.sentinel == nil {
			continue
		}
		p := problem(fmt.Errorf("around: %w", k.sentinel))
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		there := new(Error)
		if err := json.Unmarshal(text, there); err != nil {
			t.Fatal(err)
		}
		if p.Code != k.code || p.Status != k.status || !errors.Is(there, k.sentinel) || there.Error() != "around: "+k.sentinel.Error() {
			t.Errorf("%v is sent as %s", k.sentinel, text)
		}
		for _, other := range errorKinds() {
			if other.code != k.code && other.sentinel != nil && errors.Is(there, other.sentinel) {
				t.Errorf("%v is also %v", k.sentinel, other.sentinel)
			}
		}
	}
	if p := problem(errors.New("odd")); p.Code != codeInternal || p.Status != 500 {
		t.Errorf("%+v", p)
	}
}

// TestErrorWithinLeader: after an unexpected error of the leader, it is not known whether it
// accepted a submission.
func TestErrorWithinLeader(t *testing.T) {
	f, c := startOne(t)
	f.after = func(wire.Submission) error { return errors.New("odd") }
	if _, err := c.Submit(t.Context(), submission("k")); !errors.Is(err, client.ErrUndecided) || !strings.Contains(err.Error(), "odd") {
		t.Error(err)
	}
}

// TestForms: a status is the same after a conversion to JSON and back.
func TestForms(t *testing.T) {
	status := wire.JobStatus{
		ID: wire.JobID{Start: 7, N: 3}, Flow: wire.FlowID{Start: 7, N: 2}, StoppedBy: wire.JobID{Start: 7, N: 2}, Name: "näme\n", Owner: "ann", State: wire.Committing,
		Maps: wire.TaskCounts{Total: 4, Running: 3, Done: 2, FailedAttempts: 1}, Reduces: wire.TaskCounts{Total: 1},
		Read: wire.Progress{Done: 1 << 60, Total: 1<<60 + 1}, Shuffled: wire.Progress{Done: 2}, Reduced: wire.Progress{Total: 3},
		Counters: wire.Counters{"g": {"n": 1<<62 + 1}}, Error: "e", WaitReason: "for w", Troubles: []string{"t"}, Elapsed: 1500 * time.Millisecond, Prediction: wire.Prediction{Earliest: 2 * time.Second, Likely: 2500 * time.Millisecond, Latest: 3 * time.Second},
		Suspended: true, Settings: wire.Settings{
			Priority: wire.Low, Weight: 0.5, Deadline: time.Second, Batch: "b", Pool: "p", SLA: []wire.SLAStep{{After: time.Minute, Cost: 2.5}},
		},
		Partitions: &wire.PartitionSizes{
			Total: 4, Known: 3, Gathered: 1, Bytes: 1000, Median: 90, Buckets: []wire.SizeBucket{{From: 80, To: 96, Partitions: 3}},
			Largest: []wire.PartitionSize{{Partition: 3, Bytes: 95}},
		},
		HotKeys:  []wire.HotKey{{Partition: 3, Key: "the", Raw: true, Combined: true, Records: 4, Bytes: 50, Of: 95}},
		SlotTime: &wire.SlotTime{Total: 9, Uses: []wire.SlotTook{{Use: wire.SlotMap, Attempts: 2, Millis: 9}}, Deferred: 8},
	}
	job := JobOf(&status)
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	var there Job
	if err := json.Unmarshal(text, &there); err != nil {
		t.Fatal(err)
	}
	if back, err := there.Status(); err != nil || !reflect.DeepEqual(back, status) {
		t.Errorf("%+v, %v\nfrom %s", back, err, text)
	}
	if p := job.Prediction; p.LateMillis != 1500 || p.SLACost != 0 {
		t.Errorf("the job is predicted to miss %+v", p)
	}
	if k := job.HotKeys[0]; k.Share != 50.0/95 || k.ShareOfJob != 0.05 {
		t.Errorf("the key has shares %v and %v, want 50/95 and 50/1000", k.Share, k.ShareOfJob)
	}
	if !job.Settings.Late {
		t.Error("after 1.5 s of 1 s a job is late")
	}
	attempt := wire.AttemptStatus{
		Attempt: wire.AttemptID{Task: wire.TaskID{Job: status.ID, Kind: wire.Reduce, N: 2}, N: 1001}, Tracker: "t", Addr: "a",
		State: wire.AttemptReady, Bytes: wire.Progress{Done: 5, Total: 6}, Began: 1, Launched: 3, Took: 2, Error: "e", Level: wire.RackLocal,
		Reads: wire.Reads{Node: wire.Reading{Bytes: 1, Took: 2 * time.Millisecond}, Rack: wire.Reading{Bytes: 3}, Remote: wire.Reading{Bytes: 4, Took: time.Millisecond}},
	}
	a := AttemptOf(&attempt)
	if back, err := a.Status(); err != nil || back != attempt {
		t.Errorf("%+v, %v", back, err)
	}
	for _, bad := range []Job{{ID: "x", State: "running"}, {ID: "job_7_0001", State: "flying"}} {
		if _, err := bad.Status(); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	for _, bad := range []Attempt{{ID: "x", State: "ready"}, {ID: a.ID, State: "flying"}} {
		if _, err := bad.Status(); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestStream(t *testing.T) {
	f, _ := startOne(t)
	conn, err := DialStream(t.Context(), f.addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, name := range []string{"t1", strings.Repeat("long", 1<<18)} {
		if err := conn.Send(&wire.Hello{Tracker: name}); err != nil {
			t.Fatal(err)
		}
		m, err := conn.Receive()
		if hello, ok := m.(*wire.Hello); err != nil || !ok || hello.Tracker != name {
			t.Fatalf("%T, %v", m, err)
		}
	}
}

// TestSilentStream: the server closes a stream that sends no first byte. After the first byte a
// stream may be silent for longer.
func TestSilentStream(t *testing.T) {
	l := newFakeLog()
	l.readLimit = time.Second
	f, _ := l.startOne(t)
	ends := make(chan error, 1)
	f.serve = func(conn *wire.Conn) error {
		_, err := conn.Receive()
		ends <- err
		return err
	}
	conn, err := DialStream(t.Context(), f.addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := await(t, "end of the stream", ends); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the stream ended: %v", err)
	}
	received := make(chan *wire.Conn, 1)
	f.serve = func(conn *wire.Conn) error {
		_, first := conn.Receive()
		received <- conn
		_, err := conn.Receive()
		ends <- errors.Join(first, err)
		return err
	}
	if conn, err = DialStream(t.Context(), f.addr, nil); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Send(&wire.Ack{}); err != nil {
		t.Fatal(err)
	}
	there := await(t, "first message", received)
	select {
	case err := <-ends:
		t.Errorf("the stream ended: %v", err)
	case <-time.After(3 * l.readLimit):
	}
	if err := there.Send(&wire.Ack{}); err != nil {
		t.Fatalf("an answer after a pause: %v", err)
	}
	if _, err := conn.Receive(); err != nil {
		t.Errorf("an answer after a pause: %v", err)
	}
}

// TestStreamRefusals: DialStream fails at once if the server is not a job tracker, and in time if
// it does not answer.
func TestStreamRefusals(t *testing.T) {
	answer := func(text string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				http.ReadRequest(bufio.NewReader(conn))
				io.WriteString(conn, text)
				if text != "" {
					conn.Close()
				}
			}
		}()
		return l.Addr().String()
	}
	for _, c := range []struct{ addr, want string }{
		{closedAddr(t), "connection refused"},
		{answer("HTTP/1.1 200 OK\r\n\r\n"), "does not upgrade to quern-stream/1: 200 OK"},
		{answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: chat\r\n\r\n"), "does not upgrade"},
		{answer("SSH-2.0\r\n"), "malformed HTTP"},
		{answer("HTTP/1.1 101 Switching Protocols\r\nX: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n"), "longer than"},
	} {
		_, err := DialStream(t.Context(), c.addr, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.addr) {
			t.Errorf("%s: %v, want %q", c.addr, err, c.want)
		}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("out of time"))
	defer cancel()
	if _, err := DialStream(ctx, answer(""), nil); err == nil || !strings.Contains(err.Error(), "out of time") {
		t.Errorf("silence: %v", err)
	}
}

// nilJobs returns the frame of a submission with n jobs, which are nil and take a byte each.
func nilJobs(n int) string {
	body := "\x15\x81\xa4Plan\x81\xa4Jobs\xdd" + string(binary.BigEndian.AppendUint32(nil, uint32(n))) + strings.Repeat("\xc0", n)
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
}

// FuzzRequest: routes with a body answer any bytes with a code, and never with a server error.
func FuzzRequest(f *testing.F) {
	good := submission("k")
	frame, err := wire.Append(nil, &good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("/v1/submissions", frame)
	f.Add("/v1/submissions", []byte("\xff\xff\xff\xff\x15\x80"))
	f.Add("/v1/submissions", []byte("\x00\x00\x00\x06\x15\xdd\xff\xff\xff\xff"))
	f.Add("/v1/submissions", []byte(nilJobs(20_000)))
	f.Add("/v1/jobs/job_7_0001/kill", []byte(`{"reason":"x"}`))
	f.Add("/v1/cluster/voters", []byte(`{"id":"a","addr":"b"}`))
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		l := newFakeLog()
		jt := &fake{log: l, id: "jt1"}
		l.leader = jt
		r, err := http.NewRequest(http.MethodPost, "http://h"+path, bytes.NewReader(body))
		if err != nil {
			return
		}
		r.Header.Set("Content-Type", frameType)
		var w *httptest.ResponseRecorder
		membound.Bound{Free: 16 << 20, PerByte: 64}.Check(t, len(body), func() {
			w, r.Body = httptest.NewRecorder(), io.NopCloser(bytes.NewReader(body))
			New(Config{Server: jt, Voters: jt}).ServeHTTP(w, r)
		})
		if w.Code >= 500 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if w.Code == http.StatusOK || w.Code >= 300 && w.Code < 400 {
			return
		}
		if e := new(Error); json.Unmarshal(w.Body.Bytes(), e) != nil || e.Code == "" {
			t.Fatalf("%d without a code: %s", w.Code, w.Body)
		}
	})
}
