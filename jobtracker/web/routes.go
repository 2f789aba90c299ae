package web

import (
	"net/http"

	"github.com/quernmr/quern/identity"
)

// route is a method with a path, and all that there is to say about it. The handler of requests, the
// rules of access, openapi.json and the tables of docs/reference.md come from the same rows.
type route struct {
	pattern string
	action  string // in the audit log, and the id of the operation in openapi.json
	roles   []identity.Role
	rule    rule
	serve   http.HandlerFunc
	operation
}

// operation describes the requests and answers of a route.
type operation struct {
	summary string
	query   []parameter
	body    any // of the type of the JSON body, or a content type; nil: there is none
	answer  any // of the type of the JSON answer, or a content type; nil: an empty object
}

// contentType is the body or answer of an operation that is not JSON.
type contentType string

// routes lists all routes. A row begins with its pattern: a test of integration/cluster reads them.
func (h *handler) routes() []route {
	trackers, clients := []identity.Role{identity.TaskTracker}, []identity.Role{identity.Client}
	voters := []identity.Role{identity.JobTracker, identity.Client}
	readers := []identity.Role{identity.Client, identity.JobTracker}
	all := []identity.Role{identity.TaskTracker, identity.Client, identity.JobTracker, identity.Metrics}
	scrapers := []identity.Role{identity.Client, identity.Metrics}
	return []route{
		{"GET /v1/jobs", "list", readers, listed, h.jsonHandler(h.jobs),
			operation{"Lists the jobs that the cluster knows, without counters and troubles.", append(filterParameters, orderParameter, afterJob), nil, Page[Job]{}}},
		{"GET /v1/jobs/{id}", "status", readers, viewers, h.jsonHandler(h.job),
			operation{"Shows a job.", nil, nil, Job{}}},
		{"GET /v1/jobs/{id}/submission", "show submission", readers, viewers, h.jsonHandler(h.submission),
			operation{"Shows what was submitted for a job: properties, ACLs, inputs, output and program. Sensitive values are hidden.", nil, nil, Submission{}}},
		{"GET /v1/jobs/{id}/breakdown", "break down", readers, viewers, h.jsonHandler(h.breakdown),
			operation{"Shows what all attempts of a job tell: times of tasks, stragglers, locality, the first failure, bytes over time.", nil, nil, Breakdown{}}},
		{"GET /v1/flows/{id}", "show flow", readers, viewers, h.jsonHandler(h.flow),
			operation{"Shows the jobs of a flow, and for each the jobs that write its input.", nil, nil, Flow{}}},
		{"GET /v1/jobs/{id}/attempts", "list attempts", readers, viewers, h.jsonHandler(h.attempts),
			operation{"Lists the attempts of a job, with the user's token for their logs.", []parameter{attemptStateParameter, afterAttempt}, nil, Attempts{}}},
		{"GET /v1/jobs/{id}/explain", "explain", readers, viewers, h.jsonHandler(h.explain),
			operation{"Says why a job has its slots, what it waits for, and when it will end.", nil, nil, Explanation{}}},
		{"GET /v1/jobs/{id}/history", "history", readers, viewers, h.jsonHandler(h.history),
			operation{"Shows the history of an ended job, with the user's token for its logs.", nil, nil, History{}}},
		{"GET /v1/histories", "list histories", readers, listed, h.jsonHandler(h.histories),
			operation{"Lists the histories of ended jobs, newest first, without attempts, plans, counters and troubles. Those of a flow are one page.", append(filterParameters, afterJob), nil, Histories{}}},
		{"GET /v1/explain", "explain all", readers, skipped, h.jsonHandler(h.explainAll),
			operation{"Explains the jobs that have not ended, by id.", []parameter{afterJob}, nil, Page[Explanation]{}}},
		{"GET /v1/attempts", "list recent attempts", readers, skipped, h.jsonHandler(h.recent),
			operation{"Lists the attempts of all jobs that run or have just ended. They change too fast for pages; the answer says if the limit has cut them.", []parameter{recentJobParameter, attemptStateParameter, trackerParameter, limitParameter}, nil, Recent{}}},
		{"GET /v1/plans", "list plans", readers, skipped, h.jsonHandler(h.plans),
			operation{"Shows the slots that the plans of the last ten minutes had for each job, and the slots that it had.", nil, nil, Plans{}}},
		{"GET /v1/scheduling/whatif", "predict schedulers", readers, skipped, h.jsonHandler(h.whatIf),
			operation{"Predicts what each scheduler would make of the jobs that have not ended: the value of each metric, and the end of each job.", nil, nil, WhatIf{}}},
		{"GET /v1/events", "watch", readers, watchers, h.events,
			operation{"Sends server-sent events when jobs change: the jobs with these ids until they all end, or else all that the filters select.", append(filterParameters, jobParameter), nil, contentType(eventsType)}},
		{"GET /v1/cluster", "cluster", readers, everyUser, h.jsonHandler(h.cluster),
			operation{"Describes the cluster. A follower knows no task trackers.", nil, nil, Cluster{}}},
		{"GET /v1/openapi.json", "describe", readers, everyUser, h.describe,
			operation{"Describes this API, as OpenAPI 3.1.", nil, nil, contentType(jsonType)}},
		{"GET /healthz", "health", all, everyUser, h.jsonHandler(h.health),
			operation{"Says that the job tracker works, and whether it knows a leader.", nil, nil, Health{}}},
		{"GET /metrics", "metrics", scrapers, everyUser, h.metrics,
			operation{"Shows metrics in the format of Prometheus.", nil, nil, contentType("text/plain")}},
		{"GET /debug/pprof/", "profile", clients, admins, h.profiles,
			operation{"Profiles this process, see Go's net/http/pprof.", profileParameters, nil, contentType("application/octet-stream")}},
		{"POST /v1/submissions", "submit", clients, submitters, h.jsonHandler(h.submit),
			operation{"Submits a job or flow. The body is a frame with a wire.Submission.", nil, contentType(frameType), submitted{}}},
		{"POST /v1/jobs/{id}/kill", "kill", clients, modifiers, h.jsonHandler(h.kill),
			operation{"Kills a job, and all jobs of its flow.", nil, killRequest{}, nil}},
		{"POST /v1/jobs/{id}/attempts/{attempt}/kill", "kill attempt", clients, modifiers, h.jsonHandler(h.endAttempt(false)),
			operation{"Kills a running attempt of a map or reduce, and answers when it has ended. Its task runs again.", nil, killRequest{}, nil}},
		{"POST /v1/jobs/{id}/attempts/{attempt}/fail", "fail attempt", clients, modifiers, h.jsonHandler(h.endAttempt(true)),
			operation{"Fails a running attempt of a map or reduce: as its kill, but it counts as a failure of its task.", nil, killRequest{}, nil}},
		{"POST /v1/jobs/{id}/settings", "change", clients, modifiers, h.jsonHandler(h.change),
			operation{"Changes the settings of a job and of its flow, or suspends or resumes them.", nil, Change{}, nil}},
		{"POST /v1/cluster/scheduling", "change scheduling", clients, admins, h.jsonHandler(h.schedule),
			operation{"Changes the scheduler, the metric or the delay rule.", nil, Scheduling{}, nil}},
		{"POST /v1/cluster/drains", "drain", clients, admins, h.jsonHandler(h.drain),
			operation{"Drains a task tracker, or undoes that.", nil, drainRequest{}, nil}},
		{"POST /v1/cluster/exclusions", "exclude", clients, admins, h.jsonHandler(h.exclude),
			operation{"Excludes a task tracker from new work, or readmits it.", nil, ExclusionRequest{}, nil}},
		{"POST /v1/cluster/voters", "add voter", voters, ownVoter, h.jsonHandler(h.addVoter),
			operation{"Makes a job tracker a voter once it has caught up.", nil, Voter{}, nil}},
		{"DELETE /v1/cluster/voters/{id}", "remove voter", clients, admins, h.jsonHandler(h.removeVoter),
			operation{"Makes a job tracker a non-voter.", nil, nil, nil}},
		{"GET /v1/stream", "attach", trackers, everyDaemon, h.stream,
			operation{"Upgrades a task tracker's connection to " + streamProtocol + ": frames in both directions.", nil, nil, contentType("")}},
	}
}
