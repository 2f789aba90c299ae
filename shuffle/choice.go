package shuffle

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"
)

// AutoCodec as [Config.Codec] packs blocks by the codec that [Config.Network] and measured blocks make the fastest,
// or by none.
const AutoCodec = "auto"

// Network is what a task tracker knows of the network over which map output is fetched.
type Network struct {
	Rate   float64 // bytes a second that all fetches of a task tracker get together; 0: not known
	Remote float64 // fraction of the map output that other machines fetch; 0: not known, counts as 1
	Slots  int     // maps that a task tracker runs at a time

	// Spent returns the time since the map began, and how many times longer work takes than on idle processors; 0: not
	// known. nil: neither is known.
	Spent func() (elapsed time.Duration, stretch float64)
}

// Choice is a codec with the reason for it.
type Choice struct {
	Codec  string // one of [CodecNames], empty for none
	Reason string
}

// costs are the times of a byte of map output on a task tracker, in nanoseconds, without a codec.
type costs struct {
	work    float64 // of the processors, until the byte is in the map output
	network float64 // of its fetch
}

// packing is what a codec does to a byte of map output.
type packing struct {
	name  string  // empty: none
	work  float64 // nanoseconds of the processors to pack and unpack it
	ratio float64 // packed bytes for a byte
}

// times returns the time for a byte of map output. If fetches run while maps run, the slower of both decides. If they
// run after the maps, as in a job with few maps, both add up. A job is between the two.
func (p packing) times(c costs) (overlapped, apart float64) {
	work, network := c.work+p.work, c.network*p.ratio
	return max(work, network), work + network
}

// choose returns the packing that loses least: its time, in the worse of the two cases of times, is the smallest
// multiple of the best time in that case. So no other packing is faster in both cases. Earlier ones win ties.
func choose(c costs, all []packing) (best int) {
	overlapped, apart := math.Inf(1), math.Inf(1)
	for _, p := range all {
		o, a := p.times(c)
		overlapped, apart = min(overlapped, o), min(apart, a)
	}
	least := math.Inf(1)
	for i, p := range all {
		o, a := p.times(c)
		if loss := max(o/overlapped, a/apart); loss < least {
			best, least = i, loss
		}
	}
	return best
}

// autoCodecs are the codecs that a chooser measures: the fastest one, and the one that packs most for its time.
var autoCodecs = []string{"lz4", "zstd"}

// minNetwork is the part of a map's time below which the network is not worth a measurement: no codec could gain more.
const minNetwork = 0.02

// chooser chooses the codec of a map output from blocks of it. The first two are measured, and then one after four
// times as many blocks each.
type chooser struct {
	costs  costs
	fixed  bool // the choice does not depend on blocks
	choice Choice
	codec  *namedCodec

	blocks, next int // blocks so far; the one to measure next
	samples      int
	packings     []packing
	fastest      []float64 // nanoseconds to pack and unpack a byte, by codec, on one processor
	share        float64   // of the time to pack a byte in the time of a task tracker, which runs several maps
	packed, bare []byte
}

// newChooser returns a chooser for a map that has collected some bytes.
func newChooser(n Network, collected int64) *chooser {
	c := &chooser{next: 1, packings: make([]packing, 1+len(autoCodecs)), fastest: make([]float64, len(autoCodecs)),
		share: 1 / float64(max(min(n.Slots, runtime.NumCPU()), 1))}
	c.packings[0].ratio = 1
	if n.Rate <= 0 {
		c.fixed, c.choice.Reason = true, "no fetch from another machine was measured yet"
		return c
	}
	remote := n.Remote
	if remote <= 0 {
		remote = 1
	}
	c.costs.network = remote * 1e9 / n.Rate
	if n.Spent != nil && collected > 0 {
		elapsed, stretch := n.Spent()
		slots := float64(max(n.Slots, 1))
		c.costs.work = float64(elapsed) / float64(collected) / slots
		if stretch > 0 { // it also contains too few processors for the slots
			c.share = stretch / slots
		}
	}
	c.fixed = c.costs.network <= minNetwork*c.costs.work
	c.choice.Reason = c.describe()
	return c
}

// block counts a block, and may change the codec for it.
func (c *chooser) block(block []byte) *namedCodec {
	if c.blocks++; c.fixed || c.blocks < c.next {
		return c.codec
	}
	if c.next++; c.next > 2 {
		c.next = 4 * c.blocks
	}
	c.measure(block)
	name := c.packings[choose(c.costs, c.packings)].name
	c.codec, _ = codecNamed(name) // it has one of autoCodecs
	c.choice = Choice{Codec: name, Reason: c.describe()}
	return c.codec
}

// measure packs and unpacks a block by each codec. The fastest time counts: others contain pauses, or the first
// use of the codec.
func (c *chooser) measure(block []byte) {
	c.samples++
	for i, name := range autoCodecs {
		codec, _ := codecNamed(name)
		p := &c.packings[1+i]
		for range 2 {
			began := time.Now()
			c.packed = codec.Pack(c.packed[:0], block)
			took := time.Since(began)
			if len(c.packed) < len(block) { // others stay as they are, and nothing unpacks them
				began = time.Now()
				c.bare, _ = codec.Unpack(c.bare[:0], c.packed, blockTarget) // a wrong block is found by its readers
				took += time.Since(began)
			}
			if ns := float64(took) / float64(len(block)); c.fastest[i] == 0 || ns < c.fastest[i] {
				c.fastest[i] = ns
			}
		}
		ratio := min(float64(len(c.packed))/float64(len(block)), 1)
		p.name, p.work = name, c.fastest[i]*c.share
		p.ratio += (ratio - p.ratio) / float64(c.samples)
	}
}

// describe returns the measured values and their times.
func (c *chooser) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "for a byte on this task tracker, maps take %.3g ns and the network %.3g ns", c.costs.work, c.costs.network)
	if c.samples == 0 {
		return b.String()
	}
	for _, p := range c.packings[1:] {
		fmt.Fprintf(&b, "; %s takes %.3g ns and leaves %.0f %% of the bytes", p.name, p.work, 100*p.ratio)
	}
	return b.String()
}
