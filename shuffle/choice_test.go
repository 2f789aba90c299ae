package shuffle

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Values measured on a text.
var textPackings = []packing{{ratio: 1}, {"lz4", 2, 0.62}, {"zstd", 4.5, 0.39}}

// TestChoose checks choices by network and work of the maps, in nanoseconds for a byte.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name     string
		costs    costs
		packings []packing
		want     string
	}{
		{"100 Mbit/s", costs{work: 15, network: 80}, textPackings, "zstd"},
		{"1 Gbit/s, fast maps", costs{work: 5, network: 8}, textPackings, "lz4"},
		{"1 Gbit/s, slow maps", costs{work: 200, network: 8}, textPackings, ""},
		{"10 Gbit/s", costs{work: 10, network: 0.8}, textPackings, ""},
		{"no network", costs{work: 10}, textPackings, ""},
		{"nothing is known of maps", costs{network: 80}, textPackings, "zstd"},
		{"bytes without structure", costs{work: 15, network: 80}, []packing{{ratio: 1}, {"lz4", 0.2, 1}, {"zstd", 0.5, 1}}, ""},
		{"zstd packs no better", costs{work: 15, network: 80}, []packing{{ratio: 1}, {"lz4", 2, 0.5}, {"zstd", 4.5, 0.5}}, "lz4"},
		{"slow processors", costs{work: 15, network: 80}, []packing{{ratio: 1}, {"lz4", 100, 0.62}, {"zstd", 200, 0.39}}, ""},
		{"equal", costs{work: 1, network: 1}, []packing{{ratio: 1}, {"lz4", 0, 1}}, ""},
		{"the network is all", costs{work: 1, network: math.MaxFloat32}, textPackings, "zstd"},
	} {
		if got := c.packings[choose(c.costs, c.packings)].name; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestChooseNeverSlower: no other packing is faster both when fetches overlap with maps and when they do not. And if
// one packing is within 5 % of the best in both cases, the chosen one is too.
func TestChooseNeverSlower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.Float64Range(0.001, 1000)
		c := costs{work: of.Draw(t, "work"), network: of.Draw(t, "network")}
		all := []packing{{ratio: 1}}
		for i := range rapid.IntRange(0, 4).Draw(t, "codecs") {
			all = append(all, packing{fmt.Sprint(i), of.Draw(t, "packing"), rapid.Float64Range(0.001, 1).Draw(t, "ratio")})
		}
		chosen := choose(c, all)
		overlapped, apart := all[chosen].times(c)
		bestOverlapped, bestApart := math.Inf(1), math.Inf(1)
		for _, p := range all {
			o, a := p.times(c)
			if o < overlapped && a < apart {
				t.Errorf("%+v was chosen, %+v is faster", all[chosen], p)
			}
			bestOverlapped, bestApart = min(bestOverlapped, o), min(bestApart, a)
		}
		const bound = 1.05
		within := func(o, a float64) bool { return o <= bound*bestOverlapped && a <= bound*bestApart }
		for _, p := range all {
			if within(p.times(c)) && !within(overlapped, apart) {
				t.Errorf("%+v was chosen, %+v is within the bound", all[chosen], p)
			}
		}
	})
}

// TestAuto checks map outputs with a chosen codec: they are read as others, and the reason is told.
func TestAuto(t *testing.T) {
	var recs []rec
	for i := range 20_000 {
		recs = append(recs, rec{i % 3, fmt.Sprintf("key-%d", i*7919%20_000), strings.Repeat("v", i%50)})
	}
	recs = append(recs, rec{1, "key-2", strings.Repeat("large", 60_000)})
	spent := func() (time.Duration, float64) { return time.Second, 3 }
	for _, c := range []struct {
		name    string
		network Network
		packs   bool
		reason  string
	}{
		{"slow", Network{Rate: 1, Slots: 2, Spent: spent}, true, "the network 1e+09 ns; lz4 takes"},
		{"half of it is remote", Network{Rate: 1, Remote: 0.5, Spent: spent}, true, "the network 5e+08 ns; lz4 takes"},
		{"fast", Network{Rate: 1e15, Slots: 1, Spent: spent}, false, "the network 1e-06 ns"},
		{"work not known", Network{Rate: 1e15, Slots: 1}, false, "; lz4 takes"},
		{"not known", Network{}, false, "no fetch from another machine"},
	} {
		for name, memory := range map[string]int64{"spills": 200_000, "memory": 16 << 20} {
			t.Run(c.name+", "+name, func(t *testing.T) {
				_, plain := collect(t, Config{Partitions: 4, Memory: memory}, recs)
				cfg, auto := collect(t, Config{Partitions: 4, Memory: memory, Codec: AutoCodec, Network: c.network}, recs)
				checkSegment(t, cfg.File, 4, sorted(recs))
				if auto.Digest != plain.Digest || auto.Stats != plain.Stats || (auto.Bytes < plain.Bytes) != c.packs {
					t.Errorf("%+v, plain %+v", auto, plain)
				}
				if (auto.Choice.Codec != "") != c.packs || !strings.Contains(auto.Choice.Reason, c.reason) {
					t.Errorf("choice %+v", auto.Choice)
				}
			})
		}
	}
}

// TestChooserMeasuresAgain: the choice follows the blocks.
func TestChooserMeasuresAgain(t *testing.T) {
	c := newChooser(Network{Rate: 1}, 1)
	text, noise := []byte(strings.Repeat("text ", 10_000)), make([]byte, 50_000)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	for i := 1; i <= 100; i++ {
		if codec := c.block(noise); codec != nil {
			t.Fatalf("block %d: noise is packed by %s", i, codec.name)
		}
	}
	for i := 101; c.block(text) == nil; i++ {
		if i > 128 {
			t.Fatal("text is never packed")
		}
	}
	if c.samples != 5 { // blocks 1, 2, 8, 32, 128
		t.Errorf("%d blocks were measured", c.samples)
	}
}

// TestCostsOfMap: a byte costs the map's time divided by the maps that run at a time.
func TestCostsOfMap(t *testing.T) {
	n := Network{Rate: 1e8, Remote: 0.5, Slots: 4, Spent: func() (time.Duration, float64) { return 2 * time.Second, 6 }}
	c := newChooser(n, 1e8)
	if want := (costs{work: 5, network: 5}); c.costs != want || c.share != 1.5 || c.fixed {
		t.Errorf("%+v, share %v, want %+v", c.costs, c.share, want)
	}
	n.Rate = 1e10
	if c := newChooser(n, 1e8); !c.fixed {
		t.Errorf("a network of %v ns is worth a measurement", c.costs.network)
	}
	n.Spent = func() (time.Duration, float64) { return 0, 0 }
	if c := newChooser(n, 1e8); c.share > 1 || c.fixed {
		t.Errorf("share %v without a stretch", c.share)
	}
}
