package core

import (
	"github.com/quernmr/quern/wire"
)

// checkSlotTime compares what the slots of each job did with its attempts and its slots: it adds up to the time
// of each attempt that is known, and to the slots that are reserved.
func checkSlotTime(c *Core, fail func(string, ...any)) {
	if c.leader == nil {
		return
	}
	l := c.leader
	for _, j := range l.order {
		var status wire.JobStatus
		l.detail(j, &status, c.now)
		got := status.SlotTime
		if got == nil {
			got = &wire.SlotTime{}
		}
		want, sum, running := int64(0), int64(0), 0
		for _, a := range l.freezeAttempts(j).Statuses() {
			switch {
			case !a.Attempt.Task.Kind.Slotted():
			case !a.State.Final():
				running++
				want += l.wall() - a.Began
			case a.Launched > 0:
				want += a.Took + a.Began - a.Launched
			default:
				want += a.Took
			}
		}
		for _, u := range got.Uses {
			sum += u.Millis
		}
		switch slots := j.assign.UsedSlots(mapPhase) + j.assign.UsedSlots(reducePhase) - j.partitions.reservedSlots; {
		case sum != got.Total || sum-got.Of(wire.SlotGathering).Millis != want:
			fail("%v: slots were used for %d ms, the uses add up to %d, the attempts to %d: %+v", j.id, got.Total, sum, want, got)
		case running != slots || got.Of(wire.SlotRunning).Attempts != running:
			fail("%v has %d slots, runs %d attempts in slots, and %d by its slot time", j.id, slots, running, got.Of(wire.SlotRunning).Attempts)
		}
	}
}
