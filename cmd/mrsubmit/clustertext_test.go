package main

import (
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

func TestLeaderText(t *testing.T) {
	for _, c := range []struct {
		cluster web.Cluster
		want    string
	}{
		{web.Cluster{Leader: "jt1", Addr: "h:1", Epoch: 3, IsLeader: true, Jobs: 2}, "leader jt1 at h:1, epoch 3, 2 unfinished jobs"},
		{web.Cluster{Leader: "jt\x1b1", Addr: "h:1", Epoch: 3}, "no leader; the last leader was jt?1 at h:1 in epoch 3"},
		{web.Cluster{}, "no leader; the job tracker that answered has never had one"},
	} {
		if got := leaderText(&c.cluster); got != c.want {
			t.Errorf("%+v: %q, not %q", c.cluster, got, c.want)
		}
	}
}

// TestLostState: zero counts are left out.
func TestLostState(t *testing.T) {
	since := time.UnixMilli(60_000)
	for _, c := range []struct {
		maps, reduces, outputs int
		stopped                bool
		state, counts          string // texts before and after the time
	}{
		{0, 0, 0, false, "lost", ""},
		{1, 0, 0, true, "stopped", ": ran 1 map"},
		{0, 2, 1, false, "lost", ": ran 2 reduces, had 1 map output"},
		{2, 1, 9, false, "lost", ": ran 2 maps and 1 reduce, had 9 map outputs"},
		{0, 0, 9, false, "lost", ": had 9 map outputs"},
	} {
		lost := web.LostTracker{Since: since, Maps: c.maps, Reduces: c.reduces, Outputs: c.outputs, Stopped: c.stopped}
		want := c.state + " since " + timeText(since) + " (1m0s ago)" + c.counts
		if got := lostState(&lost, since.Add(time.Minute)); got != want {
			t.Errorf("%+v: %q, not %q", c, got, want)
		}
	}
}
