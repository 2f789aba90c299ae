package sim

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// client submits jobs, may change or kill some of them, and waits for their ends.
type client struct {
	w        *world
	sub      *wire.Submission
	ids      []wire.JobID // nil: not answered yet
	told     bool         // the cluster accepts no job for now; the client gave up
	killSent bool         // a kill was sent
	erratic  []bool       // by job: attempts of a map give different records
	shaped   *shapedJob   // nil: the job is not of a Mix

	settings      wire.Settings // after the last accepted change
	changePending bool          // a change is not answered yet
}

const lease = 5 * time.Second

func (w *world) addClient(plan, changes, shapes, ends *rand.Rand, i int) {
	c := &client{w: w, sub: &wire.Submission{
		Key: fmt.Sprintf("key%d", i), Staging: fmt.Sprintf("%s/key%d", clusterStaging, i), Owner: owners[i%len(owners)],
		Program: wire.Program{Path: "sim"}, Settings: drawSettings(changes),
	}}
	c.settings = c.sub.Settings
	for k := range flowSize(shapes) {
		c.addJob(plan, i, k)
	}
	c.connect(shapes)
	w.clients = append(w.clients, c)
	at := time.Duration(plan.Int64N(int64(stormTime / 2)))
	switch {
	case w.rotating:
		at *= rotatingTime / (stormTime / 2)
	case w.lasting:
		at /= 4 // jobs compete for the trackers
	}
	w.lastSubmitted = max(w.lastSubmitted, at)
	w.after(at, c.stageAndSubmit)
	if w.lasting {
		return
	}
	c.requestChanges(drawChanges(changes, at))
	if plan.IntN(8) == 0 { // submit again, as a client that got no answer
		w.after(at+time.Duration(plan.Int64N(int64(5*time.Second))), c.submit)
	}
	if plan.IntN(6) == 0 {
		w.after(at+time.Duration(plan.Int64N(int64(15*time.Second))), func() { c.kill(plan.IntN(9)) })
	}
	if ends.IntN(3) == 0 {
		w.after(at+time.Duration(ends.Int64N(int64(15*time.Second))), func() { c.endAttempt(ends.IntN(2) == 0, ends) })
	}
}

func (c *client) stageAndSubmit() {
	w := c.w
	w.must(w.fs.Mkdir(c.sub.Staging))
	frame, err := wire.Append(nil, c.sub)
	w.must(err)
	w.must(writeFile(w, c.sub.Staging+"/"+wire.StagedSubmission, frame))
	c.submit()
}

// splitProperty says whether a job's reduces wait for a slot until their partitions are
// gathered.
const splitProperty = "quern.shuffle.split"

func (c *client) addJob(plan *rand.Rand, i, k int) {
	j := wire.JobPlan{
		Name: fmt.Sprintf("job%d.%d", i, k), Reduces: plan.IntN(4), Format: "text",
		Output: fmt.Sprintf("mem://c/out/%d.%d", i, k),
		Properties: map[string]string{
			"mapreduce.task.timeout":                        "15000",
			"mapreduce.map.maxattempts":                     "8",
			"mapreduce.reduce.maxattempts":                  "8",
			"mapreduce.input.fileinputformat.split.minsize": "40",
		},
	}
	if c.w.rotating { // the defaults
		delete(j.Properties, "mapreduce.map.maxattempts")
		delete(j.Properties, "mapreduce.reduce.maxattempts")
	}
	if plan.IntN(3) == 0 {
		j.Properties["mapreduce.map.memory.mb"] = "100"
	}
	c.w.drawRequests(&j)
	if c.w.shuffles.IntN(4) == 0 {
		j.Properties[splitProperty] = "false"
		j.Properties["mapreduce.job.reduce.slowstart.completedmaps"] = []string{"0", "0.5", "1"}[c.w.shuffles.IntN(3)]
	}
	if c.w.badRecords {
		maps.Copy(j.Properties, skipProperties)
	}
	if c.w.mapFiles && j.Reduces > 0 {
		j.Outputs = []string{mapFilesOutput}
	}
	name := fmt.Sprintf("mem://c/in/%d", i)
	if k == 0 {
		splits := plan.IntN(12)
		if c.w.lasting && !c.w.rotating {
			splits *= 4 // for all of lastingTrackers
		}
		c.w.must(writeFile(c.w, name, make([]byte, inputBlock*splits)))
	}
	j.Inputs = []wire.InputPlan{{Format: "lines", Paths: []string{name}}}
	c.sub.Plan.Jobs = append(c.sub.Plan.Jobs, j)
	c.erratic = append(c.erratic, plan.IntN(10) == 0 && !c.w.lasting || c.w.sabotage == hideDigests)
}

// must ends the run if a call that cannot fail has failed.
func (w *world) must(err error) {
	if err != nil {
		w.fail("the simulation itself: %v", err)
	}
}

// request sends a request to random job trackers until a leader answers.
func (c *client) request(event func(core.Token) core.Event, answered func(core.Reply)) {
	w := c.w
	n := w.jts[w.rnd.IntN(len(w.jts))]
	done := false
	retry := func() {
		if !done {
			done = true
			w.after(100*time.Millisecond+w.upTo(300*time.Millisecond), func() { c.request(event, answered) })
		}
	}
	if !n.up {
		retry()
		return
	}
	n.later(w.upTo(5*time.Millisecond), func() {
		n.request(event, func(r core.Reply) {
			life := n.life
			w.after(w.upTo(5*time.Millisecond), func() {
				switch {
				case done || n.life != life:
				case isNotLeader(r.Err):
					retry()
				default:
					done = true
					answered(r)
				}
			})
		})
	})
	w.after(3*time.Second, retry)
}

func (c *client) submit() {
	w := c.w
	c.request(func(t core.Token) core.Event {
		return core.Submit{Token: t, Wall: wallStart + w.now.Milliseconds(), Submission: c.sub, Secret: []byte(c.sub.Key)}
	}, func(r core.Reply) {
		if errors.Is(r.Err, admission.ErrBusy) {
			c.told = true
			w.must(w.fs.RemoveAll(c.sub.Staging))
			return
		}
		if r.Err != nil || c.ids != nil && !slices.Equal(c.ids, r.Jobs) {
			w.fail("V7: submission %s is answered %v %v, but was answered %v", c.sub.Key, r.Jobs, r.Err, c.ids)
		}
		w.note("submission %s is answered %v", c.sub.Key, r.Jobs)
		c.ids = r.Jobs
	})
}

func (c *client) kill(n int) {
	w := c.w
	if len(c.ids) == 0 {
		return
	}
	id := c.ids[n%len(c.ids)]
	c.killSent = true
	c.request(func(t core.Token) core.Event { return core.Kill{Token: t, Job: id, Reason: "a client"} }, func(r core.Reply) {
		w.note("the kill of %v is answered %v", id, r.Err)
		if r.Err == nil {
			w.book.killAnswered[id] = true
		}
	})
}

// endAttempt kills or fails a running attempt of the client's jobs, if there is one.
func (c *client) endAttempt(fail bool, draw *rand.Rand) {
	w := c.w
	var running []wire.AttemptID
	for _, n := range w.jts {
		for _, id := range c.ids {
			if n.up {
				all, _, _ := n.core.Attempts(id, wire.AttemptID{}) // none if it does not lead
				for _, a := range all.Attempts {
					if !a.State.Final() && a.Attempt.Task.Kind.Slotted() {
						running = append(running, a.Attempt)
					}
				}
			}
		}
	}
	if len(running) == 0 {
		return
	}
	id := running[draw.IntN(len(running))]
	c.request(func(t core.Token) core.Event { return core.EndAttempt{Token: t, Attempt: id, Fail: fail} }, func(r core.Reply) {
		w.note("the end of %v, failed %v, is answered %v", id, fail, r.Err)
		if fail && r.Err == nil {
			w.book.failAnswered[id.String()] = true
		}
	})
}

// status asks the job tracker that has applied the most entries.
func (w *world) status(id wire.JobID) (wire.JobStatus, bool) {
	var best *jobTracker
	for _, n := range w.jts {
		if n.up && (best == nil || n.applied > best.applied) {
			best = n
		}
	}
	if best == nil {
		return wire.JobStatus{}, false
	}
	return best.core.Status(id)
}

// job returns a job's client and its index in the client's plan. The log has the job's number
// before the client gets it.
func (w *world) job(id wire.JobID) (*client, int) {
	if id.N < 1 || id.N > len(w.book.jobs) {
		w.fail("%v belongs to no client", id)
	}
	x := w.book.jobs[id.N-1]
	return x.client, x.index
}

// digestOf is the digest of a map's output.
func (w *world) digestOf(id wire.AttemptID) uint64 {
	d := digest(id.Task.Job, id.Task.N)
	if c, i := w.job(id.Task.Job); c.erratic[i] {
		d += uint64(id.N) << 20
	}
	return d
}

func digest(job wire.JobID, m int) uint64 { return uint64(job.N*1000 + m + 1) }

// records reports whether a map has records for a partition.
func records(job wire.JobID, m, partition int) bool { return (job.N+3*m+5*partition)%4 > 0 }
