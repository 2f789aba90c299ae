package shuffle

import "testing"

func TestMemory(t *testing.T) {
	kept := new(Memory)
	first := func() *byte { // of the memory of a collector of that size, which is discarded
		c, err := NewCollector(Config{Partitions: 1, Memory: 1 << 20, Kept: kept})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Discard()
		return &c.mem[0]
	}
	begins := first()
	if first() != begins {
		t.Error("a collector of the same size got other memory")
	}
	other, used, err := kept.take(1 << 10)
	if err != nil || used || len(other.mem) != 1<<10 || kept.kept.mem != nil {
		t.Errorf("took %d bytes, %d are still kept, %v", len(other.mem), len(kept.kept.mem), err)
	}
	kept.put(&other)
	if kept.Free(); other.mem != nil || kept.kept.mem != nil {
		t.Error("memory is kept after Free")
	}
}
