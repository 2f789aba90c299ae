package gather

import (
	"testing"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestCounts: each fetch is counted once, by its result. Only those that succeed have bytes.
func TestCounts(t *testing.T) {
	c := newCounts()
	for _, x := range []struct {
		ev        core.FetchDone
		cancelled bool
		want      Result
	}{
		{core.FetchDone{Segment: wire.Segment{Length: 100}}, false, Succeeded},
		{core.FetchDone{Segment: wire.Segment{Length: 20}}, true, Succeeded}, // the file is there
		{core.FetchDone{Error: "x"}, true, Cancelled},
		{core.FetchDone{Error: "x", Corrupt: true}, false, Corrupt},
		{core.FetchDone{Error: "x", Missing: true}, false, Missing},
		{core.FetchDone{Error: "x", Stalled: true}, false, Stalled},
		{core.FetchDone{Error: "x", DiskFailed: true}, false, Disk},
		{core.FetchDone{Error: "x"}, false, Failed},
	} {
		before := c.Fetches[x.want].Value()
		if c.add(&x.ev, x.cancelled, time.Second); c.Fetches[x.want].Value() != before+1 {
			t.Errorf("%+v is not counted as %v", x.ev, x.want)
		}
	}
	total := int64(0)
	for r := range Results {
		total += c.Fetches[r].Value()
	}
	if times := c.Times.Distribution(); total != 8 || c.Bytes.Value() != 120 || times.Total() != 2 {
		t.Errorf("%d fetches, %d bytes, %d times", total, c.Bytes.Value(), times.Total())
	}
}
