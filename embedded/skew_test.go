//go:build unix

package embedded

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// TestSkewIsNamedEarly: the status of a job names the hot key while the reduce is still within its group, with the
// sizes of partitions and what the slots did.
func TestSkewIsNamedEarly(t *testing.T) {
	const records = 100_000
	named, once := make(chan struct{}), sync.Once{}
	defer once.Do(func() { close(named) })
	job := wordCount(func(t *runtime.Task, in *runtime.Split, out runtime.Collector) error {
		if t.ID.Task.N > 0 {
			return nil
		}
		for range records {
			if err := out.Collect(1, []byte("rose"), nil); err != nil {
				return err
			}
		}
		return out.Collect(0, []byte("a"), nil)
	}, nil)
	job.Reduce = func(_ *runtime.Task, in runtime.Records) error {
		var key []byte
		g := in.(interface{ Groups() *runtime.Groups }).Groups()
		g.Describe(func() []byte { return key }, func(key []byte) (string, error) { return string(bytes.ToUpper(key)), nil })
		for n := 0; in.Next(); n++ {
			if key = []byte("rose"); n < records/2 {
				continue
			}
			select { // the attempt reports twice a second, if it reads
			case <-named:
			case <-time.After(time.Millisecond):
			}
		}
		return in.Err()
	}
	c := start(t, Config{Slots: 2}, job)
	defer c.Close()
	ids := submit(t, c)
	var seen wire.JobStatus
	for statuses, err := range c.Watch(t.Context(), ids) {
		if err != nil {
			t.Fatal(err)
		}
		if s := statuses[0]; len(s.HotKeys) > 0 {
			seen = s
			once.Do(func() { close(named) })
		}
	}
	if len(seen.HotKeys) != 1 {
		t.Fatalf("hot keys %+v, want one", seen.HotKeys)
	}
	if k := seen.HotKeys[0]; k.Key != "ROSE" || k.Partition != 1 || k.Raw || k.Combined || k.Records < records/2 || k.Bytes < 6*k.Records || k.Of < k.Bytes {
		t.Errorf("hot key %+v", k)
	}
	if p := seen.Partitions; p == nil || p.Total != reduces || p.Largest[0].Partition != 1 || p.Largest[0].Bytes < 6*records {
		t.Errorf("sizes of partitions %+v", p)
	}
	if s := seen.SlotTime; s == nil || s.Of(wire.SlotMap).Attempts != len(inputs) || s.Total == 0 {
		t.Errorf("slot time %+v", s)
	}
}
