package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

func (c *Core) fromLeader(m wire.Message) {
	if !c.connected {
		return
	}
	c.lastMessageAt = c.now
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
		if c.acceptsEpoch(m.Epoch) {
			c.launch(m)
		}
	case *wire.Kill:
		if c.acceptsEpoch(m.Epoch) {
			c.killRequested(m)
		}
	case *wire.Grant:
		if c.acceptsEpoch(m.Epoch) {
			c.granted(m)
		}
	case *wire.SetHome:
		if c.acceptsEpoch(m.Epoch) {
			c.setHome(m)
		}
	case *wire.Outputs:
		if c.acceptsEpoch(m.Epoch) {
			for i := range m.Lists {
				c.outputs(&m.Lists[i])
			}
		}
	case *wire.Shares:
		if c.acceptsEpoch(m.Epoch) {
			c.share(m.Shares)
		}
	case *wire.DropJob:
		if c.acceptsEpoch(m.Epoch) {
			c.dropJob(m)
		}
	case *wire.Drained:
		if c.acceptsEpoch(m.Epoch) {
			c.do(Leave{})
		}
	case *wire.Ack: // only shows that the leader is alive
	default:
		c.hangup(fmt.Sprintf("a job tracker does not send a %T", m))
	}
}

// acceptsEpoch reports whether no newer epoch than a command's is known.
func (c *Core) acceptsEpoch(epoch uint64) bool {
	c.epoch = max(c.epoch, epoch)
	return epoch == c.epoch
}

// endIncarnation kills all attempts, and forgets homes, shares and reports. It keeps map
// outputs and their reports, which the next inventory offers to the leader.
func (c *Core) endIncarnation() {
	if len(c.shares.byJob) > 0 {
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
			forget := a.phase == final && !a.hasOutput()
			if forget {
				delete(c.attempts, a.id)
			}
			return forget
		})
	}
}

// pageBytes is the approximate size of an inventory page, well below wire.MaxFrame.
const pageBytes = 1 << 20

// inventory sends all live jobs with their attempts and homes, in pages.
func (c *Core) inventory() {
	page, size := &wire.Inventory{}, 0
	reserve := func(n int) {
		if size > 0 && size+n > pageBytes {
			page.More = true
			c.send(page)
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
			reserve(homeReportBytes + hotBytes(h.hot))
			page.Homes = append(page.Homes, h.reported)
		}
		if len(j.homes) > 0 && len(j.outputs) > 0 {
			sums := j.knownSums()
			reserve(jobBytes + sumBytes*len(sums))
			page.Known = append(page.Known, wire.KnownOutputs{Job: j.id, Sums: sums})
		}
		for _, a := range j.attempts {
			a.hotSent = false
			r := a.report()
			reserve(resultBytes(r.Result) + hotBytes(r.Hot))
			page.Attempts = append(page.Attempts, *r)
		}
		if len(j.homes)+len(j.attempts) == 0 {
			reserve(jobBytes)
			page.Jobs = append(page.Jobs, j.id)
		}
	}
	c.send(page)
}

const (
	homeReportBytes = 200
	jobBytes        = 40
	sumBytes        = 9
)

// maxResult limits the size of a worker's result in a report.
const maxResult = 2 << 20

// resultBytes returns an upper bound of a report's length in a frame.
func resultBytes(r *wire.Result) int {
	if r == nil {
		return 400
	}
	n := 800 + len(r.Error) + len(r.Log) + hotBytes(r.Hot)
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

func (c *Core) nextHeartbeat() time.Duration {
	if c.progressUnsent || len(c.unreported) > 0 {
		return c.heartbeatAt + min(progressEvery, c.lease/3)
	}
	return c.heartbeatAt + c.lease/3
}

// sendProgress reports progress of attempts and homes, at most four times a second. Its
// heartbeats also renew the lease.
func (c *Core) sendProgress() {
	if !c.registered || c.now < c.nextHeartbeat() {
		return
	}
	for _, h := range c.unreported {
		h.unreported = false
		if h.dropped {
			continue
		}
		if r := h.report(); r != h.reported {
			h.reported = r
			c.send(&r)
		}
	}
	c.unreported = nil
	heartbeat := &wire.Heartbeat{Rate: c.fetchMeter.rate(c.cfg.FetchRate), Awaited: c.awaited(), Machine: c.machine.take(c)}
	for _, a := range c.active {
		if !a.job.dropped {
			heartbeat.Attempts = append(heartbeat.Attempts, *a.report())
			a.hotSent = true
		}
	}
	c.send(heartbeat)
	c.heartbeatAt, c.progressUnsent = c.now, false
}
