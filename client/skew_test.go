package client

import (
	"bytes"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestSkew tests which partitions and keys a status names, and what it says about slots.
func TestSkew(t *testing.T) {
	sizes := func(median int64, largest ...int64) *wire.PartitionSizes {
		p := &wire.PartitionSizes{Total: 10, Known: 10, Bytes: 100 << 20, Median: median}
		for i, n := range largest {
			p.Largest = append(p.Largest, wire.PartitionSize{Partition: 7 - i, Bytes: n << 20})
		}
		return p
	}
	key := func(key string, mib int64) wire.HotKey {
		return wire.HotKey{Partition: 7, Key: key, Records: 5, Bytes: mib << 20, Of: 40 << 20}
	}
	raw, combined := key("\x1b", 20), key("c", 20)
	raw.Raw, combined.Combined = true, true
	for name, c := range map[string]struct {
		job  wire.JobStatus
		want []string
	}{
		"nothing":      {wire.JobStatus{}, nil},
		"balanced":     {wire.JobStatus{Partitions: sizes(9<<20, 12, 11)}, nil},
		"small":        {wire.JobStatus{Partitions: sizes(0, 0, 0)}, nil},
		"one is large": {wire.JobStatus{Partitions: sizes(6<<20, 40, 7, 6, 6)}, []string{"partition 7 has 40.0 MiB, partition 6 has 7.0 MiB, partition 5 has 6.0 MiB; the median is 6.0 MiB"}},
		"keys": {wire.JobStatus{State: wire.Killed, Partitions: sizes(9<<20, 12), HotKeys: []wire.HotKey{key("the", 30), raw, combined, key("d", 20), key("e", 1)}}, []string{
			`key "the" has 75 % of the bytes of partition 7 and 30 % of the job's: 30.0 MiB in 5 records`,
			`the key with bytes "?" has 50 % of the bytes of partition 7 and 20 % of the job's: 20.0 MiB in 5 records`,
			`key "c" has 50 % of the bytes of partition 7 and 20 % of the job's: 20.0 MiB in 5 combined records`,
		}},
		"running": {wire.JobStatus{State: wire.Committing, Partitions: sizes(9<<20, 12), HotKeys: []wire.HotKey{key("the", 30)}}, []string{
			`key "the" so far has 75 % of the bytes of partition 7 and 30 % of the job's: 30.0 MiB in 5 records`,
		}},
		"small keys": {wire.JobStatus{Partitions: sizes(9<<20, 12), HotKeys: []wire.HotKey{{Key: "k", Bytes: 90 << 10, Of: 100 << 10}}}, nil},
		"slots": {wire.JobStatus{SlotTime: &wire.SlotTime{Total: 10_000, Deferred: 2000, Uses: []wire.SlotTook{
			{Use: wire.SlotStart, Attempts: 9, Millis: 40}, {Use: wire.SlotMap, Attempts: 3, Millis: 3000}, {Use: wire.SlotReduce, Attempts: 1, Millis: 6000}, {Use: "new", Attempts: 1, Millis: 960},
		}}}, []string{"slot time 10s: reduces 60 %, maps 30 %, new 10 %; free slots left for local ones: 2s"}},
	} {
		var out bytes.Buffer
		if err := PrintStatus(&out, &c.job); err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(out.String(), "\n")
		want := ""
		for _, line := range c.want {
			if !strings.HasPrefix(line, "slot time") {
				line = "skew: " + line
			}
			want += "  " + line + "\n"
		}
		if text != want {
			t.Errorf("%s:\n%swant\n%s", name, text, want)
		}
	}
}
