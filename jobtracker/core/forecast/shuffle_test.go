package forecast

import (
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
)

func TestShuffle(t *testing.T) {
	past := &history.Profile{Read: 100, Shuffled: 50}
	for _, c := range []struct {
		name   string
		output Output
		want   Shuffle
	}{
		{"nothing known", Output{Maps: -1}, Shuffle{}},
		{"no maps", Output{}, Shuffle{}},
		{"all made", Output{Maps: 2, MapsDone: 2, Bytes: 60, Fetched: 20, Past: past}, Shuffle{20, 60, 60}},
		{"some made, by their input", Output{Maps: 9, MapsDone: 2, Bytes: 60, Read: 30, Input: 300, Past: past}, Shuffle{0, 60, 600}},
		{"some made, input not known", Output{Maps: 8, MapsDone: 2, Bytes: 60, Past: past}, Shuffle{0, 60, 240}},
		{"history by its input", Output{Maps: 8, Input: 300, Past: past}, Shuffle{0, 0, 150}},
		{"history, input not known", Output{Maps: -1, Past: past}, Shuffle{0, 0, 50}},
		{"homes have fetched outputs that are lost", Output{Maps: 2, MapsDone: 1, Bytes: 30, Fetched: 60}, Shuffle{30, 30, 60}},
		{"never less than maps have produced", Output{Maps: 2, MapsDone: 1, Bytes: 30, Read: 100, Input: 50}, Shuffle{0, 30, 30}},
	} {
		if got := c.output.Shuffle(); got != c.want || got.BytesLeft() != c.want.Total-c.want.Gathered {
			t.Errorf("%s: %+v, not %+v", c.name, got, c.want)
		}
	}
}

func TestBandwidth(t *testing.T) {
	var b Bandwidth
	b.Add(0)
	if b.Rate() != 0 || b.Homes != 1 {
		t.Errorf("a tracker without a known rate: %+v", b)
	}
	b.Add(10)
	b.Add(30)
	if b.Rate() != 60 || b.Homes != 3 {
		t.Errorf("%v of %d homes, not 60 of 3", b.Rate(), b.Homes)
	}
}

func TestFreeAt(t *testing.T) {
	for _, c := range []struct {
		slots       int
		rests, want []float64
	}{
		{0, nil, []float64{}},
		{2, nil, []float64{0, 0}},
		{3, []float64{7, 5}, []float64{0, 5, 7}},
		{2, []float64{7, 5, 9}, []float64{7, 9}}, // its slots were reduced
		{0, []float64{7}, []float64{}},
	} {
		if got := FreeAt(c.slots, slices.Clone(c.rests)); !slices.Equal(got, c.want) {
			t.Errorf("%d slots with %v: %v, not %v", c.slots, c.rests, got, c.want)
		}
	}
}

func TestSlowness(t *testing.T) {
	for _, c := range []struct {
		there history.Sum
		mean  time.Duration
		want  float64
	}{
		{warmTasks(9).All, second, 0}, // one task is too few
		{warmTasks(4, 4).All, 0, 0},
		{warmTasks(4, 4).All, 2 * second, 2},
		{warmTasks(1, 1).All, 100 * second, minSlowness},
		{warmTasks(1000, 1000).All, second, maxSlowness},
	} {
		if got := Slowness(c.there, c.mean); got != c.want {
			t.Errorf("%v tasks in %v with a mean of %v: %v, want %v", c.there.Tasks, c.there.Took, c.mean, got, c.want)
		}
	}
	one, two := warmTasks(2).All, warmTasks(2, 2).All
	for _, c := range []struct {
		slow float64
		job  *history.Sum
		took time.Duration
		want float64
	}{
		{0, &two, 4 * second, 1.2},
		{2, &two, 4 * second, 2},
		{1, &two, 1000 * second, 2.8},
		{1, &one, 4 * second, 1},
		{0, &two, 0, 0},
	} {
		if got := UpdateSlowness(c.slow, c.job, c.took); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%v, then a task of %v: %v, not %v", c.slow, c.took, got, c.want)
		}
	}
}

func TestOnTrackers(t *testing.T) {
	sum := func(tasks int, took time.Duration) *history.Sum { return &history.Sum{Tasks: tasks, Took: took} }
	own := map[string]*history.Sum{"b": sum(2, 4*second), "a": sum(1, 3*second)}
	past := map[string]*history.Sum{"c": sum(8, 80*second), "b": sum(2, 10*second), "d": sum(0, 0)}
	want := []OnTracker{{"a", 1, 3}, {"b", 4, 14}, {"c", 4, 40}}
	if got := OnTrackers(own, past); !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	if got := OnTrackers(nil, nil); len(got) != 0 {
		t.Errorf("nothing known: %v", got)
	}
}

func TestGathering(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		rate  float64
		want  time.Duration
	}{{100, 50, 2 * second}, {100e6, 0, 2 * second}, {0, 0, 0}} {
		if got := GatherTime(c.bytes, c.rate); got != c.want {
			t.Errorf("%d bytes at %v a second: %v, not %v", c.bytes, c.rate, got, c.want)
		}
	}
}
