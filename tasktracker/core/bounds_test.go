package core

import (
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestLongResults: very long errors, logs and lists of lost segments are cut for the
// report. The beginning of the error stays, and the error is not fatal.
func TestLongResults(t *testing.T) {
	cause := "the cause " + strings.Repeat("x", 3<<20)
	lost := make([]wire.OutputLost, 10_000)
	for i := range lost {
		lost[i] = wire.OutputLost{Map: i, Reason: "the cause " + strings.Repeat("x", 300)}
	}
	for name, result := range map[string]wire.Result{
		"error": {Error: cause},
		"log":   {Error: "the cause x", Log: cause},
		"lost":  {Error: "the cause x", Lost: lost},
	} {
		c := New(Config{Tracker: "t1", Process: 1, MapSlots: 1, Dir: "D", Embedded: true})
		var reported []*wire.Report
		step := func(ev Event) {
			for _, cmd := range c.Step(0, ev) {
				if send, ok := cmd.(Send); ok {
					if r, ok := send.Message.(*wire.Report); ok {
						reported = append(reported, r)
					}
				}
			}
		}
		step(StreamUp{})
		step(FromLeader{&wire.Welcome{Epoch: 1, Incarnation: 1, Lease: time.Hour}})
		id := wire.AttemptID{Task: wire.TaskID{Job: wire.JobID{Start: 1, N: 1}, Kind: wire.Map}, N: 1000}
		step(FromLeader{&wire.Launch{Epoch: 1, Attempt: id, Staging: "s"}})
		step(FromWorker{Worker: 1, Message: &wire.WorkerHello{Protocol: wire.WorkerProtocol}})
		step(FromWorker{Worker: 1, Message: &wire.WorkerDone{Result: result}})
		step(WorkerExited{Worker: 1, Reason: "exit status 1"})
		step(LogRead{Attempt: id, Text: "last lines"})
		if len(reported) != 1 || reported[0].Result == nil {
			t.Fatalf("%s: reported %+v", name, reported)
		}
		r := reported[0].Result
		frame, err := wire.Append(nil, reported[0])
		if err != nil || len(frame) > 64<<10 || r.Fatal || !strings.HasPrefix(r.Error, "the cause x") {
			t.Errorf("%s: %d bytes, %v, fatal is %v: %.100s", name, len(frame), err, r.Fatal, r.Error)
		}
		if len(r.Lost) > wire.MaxLost || name == "lost" && len(r.Lost) == 0 {
			t.Errorf("%s: %d lost segments", name, len(r.Lost))
		}
	}
}
