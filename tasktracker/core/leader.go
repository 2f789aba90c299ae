package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

func (c *Core) fromLeader(m wire.Message) {
	if !c.up {
		return
	}
	c.heard = c.now
	switch m := m.(type) {
	case *wire.Welcome:
		c.welcome(m)
		return
	case *wire.Staging:
		c.readNonce(m)
		return
	case *wire.Refuse:
		c.refused(m)
		return
	}
	if !c.registered {
		c.hangup(fmt.Sprintf("a %T came before the welcome", m))
		return
	}
	switch m := m.(type) {
	case *wire.Launch:
		if c.obeys(m.Epoch) {
			c.launch(m)
		}
	case *wire.Kill:
		if c.obeys(m.Epoch) {
			c.killed(m)
		}
	case *wire.Grant:
		if c.obeys(m.Epoch) {
			c.granted(m)
		}
	case *wire.SetHome:
		if c.obeys(m.Epoch) {
			c.setHome(m)
		}
	case *wire.Outputs:
		if c.obeys(m.Epoch) {
			c.outputs(m)
		}
	case *wire.Shares:
		if c.obeys(m.Epoch) {
			c.share(m.Shares)
		}
	case *wire.DropJob:
		if c.obeys(m.Epoch) {
			c.dropJob(m)
		}
	case *wire.Drained:
		if c.obeys(m.Epoch) {
			c.do(Leave{})
		}
	case *wire.Ack: // it was heard
	default:
		c.hangup(fmt.Sprintf("a job tracker does not send a %T", m))
	}
}

// obeys says whether a command's epoch is the newest seen, which it may begin.
func (c *Core) obeys(epoch uint64) bool {
	c.epoch = max(c.epoch, epoch)
	return epoch == c.epoch
}

// endIncarnation kills what runs, which is reported when it is dead, and forgets
// homes, shares and all reports except those of map outputs, which are offers from
// now on.
func (c *Core) endIncarnation() {
	if len(c.shares.of) > 0 {
		c.share(nil)
	}
	for _, a := range slices.Clone(c.active) {
		c.kill(a, "its tracker was lost to the job tracker")
	}
	for _, j := range c.sortedJobs() {
		for len(j.homes) > 0 {
			c.dropHome(j.homes[0])
		}
		clear(j.outputs)
		j.attempts = slices.DeleteFunc(j.attempts, func(a *attempt) bool {
			gone := a.phase == final && !a.hasOutput()
			if gone {
				delete(c.attempts, a.id)
			}
			return gone
		})
	}
}

// pageBytes is about how long an inventory page gets, well below wire.MaxFrame.
const pageBytes = 1 << 20

// inventory sends all attempts of live jobs and all homes, in pages.
func (c *Core) inventory() {
	page, size := &wire.Inventory{}, 0
	room := func(n int) {
		if size > 0 && size+n > pageBytes {
			page.More = true
			c.tell(page)
			page, size = &wire.Inventory{}, 0
		}
		size += n
	}
	for _, j := range c.sortedJobs() {
		if j.dropped {
			continue
		}
		for _, h := range j.homes {
			h.reported = h.report()
			room(homeReportBytes)
			page.Homes = append(page.Homes, h.reported)
		}
		for _, a := range j.attempts {
			r := a.report()
			room(resultBytes(r.Result))
			page.Attempts = append(page.Attempts, *r)
		}
		if len(j.homes)+len(j.attempts) == 0 {
			room(jobBytes)
			page.Jobs = append(page.Jobs, j.id)
		}
	}
	c.tell(page)
}

const (
	homeReportBytes = 200
	jobBytes        = 40
)

// maxResult bounds what a worker's result may take in a report.
const maxResult = 2 << 20

// resultBytes estimates a report's length in a frame, from above.
func resultBytes(r *wire.Result) int {
	if r == nil {
		return 400
	}
	n := 800 + len(r.Error) + len(r.Log)
	for group, names := range r.Counters {
		n += len(group) + 10
		for name := range names {
			n += len(name) + 14
		}
	}
	for i := range r.Lost {
		n += 200 + len(r.Lost[i].Reason)
	}
	return n
}

func (c *Core) nextBeat() time.Duration {
	if c.progress || len(c.untold) > 0 {
		return c.beat + min(progressEvery, c.lease/3)
	}
	return c.beat + c.lease/3
}

// tellProgress renews the lease and tells, at most four times a second, how far
// attempts and homes are.
func (c *Core) tellProgress() {
	if !c.registered || c.now < c.nextBeat() {
		return
	}
	for _, h := range c.untold {
		h.untold = false
		if h.gone {
			continue
		}
		if r := h.report(); r != h.reported {
			h.reported = r
			c.tell(&r)
		}
	}
	c.untold = nil
	beat := &wire.Heartbeat{Rate: c.pace.rate(c.cfg.FetchRate)}
	for _, a := range c.active {
		if !a.job.dropped {
			beat.Attempts = append(beat.Attempts, *a.report())
		}
	}
	c.tell(beat)
	c.beat, c.progress = c.now, false
}
