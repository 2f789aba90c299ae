package sim

import (
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// dialWorld is a world with a task tracker and without faults.
func dialWorld() (*world, *taskTracker) {
	w := emptyWorld(&Result{})
	w.calm, w.allocation = true, core.PoolsRead{Err: errPools}
	w.scheduling = wire.Scheduling{Scheduler: "fifo", Metric: "sum-response", Delay: "none"}
	w.addNodes(1)
	return w, w.tts[0]
}

// TestDialAcrossPartition tests that no stream opens if the network is cut during the handshake.
func TestDialAcrossPartition(t *testing.T) {
	w, tt := dialWorld()
	if !w.run(func() bool { return tt.dials > 0 }, time.Minute) {
		t.Fatal("the task tracker does not dial")
	}
	to := w.jts[tt.lastDialed%len(w.jts)]
	heal := w.block(to.name, tt.name)
	w.run(func() bool { return tt.link != nil && tt.link.jt == to }, w.now+time.Second)
	if tt.link != nil && tt.link.jt == to {
		t.Error("a stream opens although the network was cut during the handshake")
	}
	heal()
	if !w.run(func() bool { return tt.link != nil }, w.now+time.Minute) {
		t.Error("the task tracker does not dial again")
	}
}

// TestHandshakesEndWithProcess tests that new connections do not wait for handshakes of a dead process.
func TestHandshakesEndWithProcess(t *testing.T) {
	w, _ := dialWorld()
	n := w.jts[0]
	for range 10_000 {
		n.shakeHands()
	}
	n.crash(time.Millisecond)
	w.run(func() bool { return n.up }, time.Minute)
	if took := n.shakeHands(); took != handshakeTime {
		t.Errorf("the first handshake of a new process takes %v, want %v", took, handshakeTime)
	}
}
