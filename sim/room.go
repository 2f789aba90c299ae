package sim

import (
	"fmt"
	"strconv"

	"github.com/quernmr/quern/wire"
)

// room is memory in MiB, and cores.
type room struct{ memory, cores int }

// offers draws what a tracker offers: in half of the worlds nothing. Each offer holds each request
// that drawRequests draws, so a job need not wait for one tracker.
func (w *world) drawOffer() room {
	if !w.offersRoom {
		return room{}
	}
	return room{200 + 100*w.rooms.IntN(3), 2 * w.rooms.IntN(3)}
}

// drawRequests draws what the tasks of a job request.
func (w *world) drawRequests(j *wire.JobPlan) {
	if !w.offersRoom {
		return
	}
	for _, kind := range []string{"map", "reduce"} {
		j.Properties["mapreduce."+kind+".memory.mb"] = strconv.Itoa(100 * w.rooms.IntN(3))
		j.Properties["mapreduce."+kind+".cpu.vcores"] = strconv.Itoa(w.rooms.IntN(3))
	}
}

// requestOf reads what an attempt requests from its job's plan.
func (w *world) requestOf(id wire.AttemptID) room {
	for _, c := range w.clients {
		for i, job := range c.ids {
			if job == id.Task.Job {
				p := c.sub.Plan.Jobs[i].Properties
				number := func(what string) int {
					n, _ := strconv.Atoi(p[fmt.Sprintf("mapreduce.%v.%s", id.Task.Kind, what)])
					return n
				}
				return room{number("memory.mb"), number("cpu.vcores")}
			}
		}
	}
	return room{} // the client has no answer to its submission yet
}

// checkRoom checks that the attempts that are launched on a tracker fit its offer.
func (t *taskTracker) checkRoom() {
	used := room{}
	for id := range t.open {
		if id.Task.Kind.Slotted() {
			r := t.w.requestOf(id)
			used.memory, used.cores = used.memory+r.memory, used.cores+r.cores
		}
	}
	if t.offer.memory > 0 && used.memory > t.offer.memory || t.offer.cores > 0 && used.cores > t.offer.cores {
		t.w.fail("V1: attempts on %s request %+v, and it offers %+v: %v", t.name, used, t.offer, sortedAttempts(t.open))
	}
}
