package gossip

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/quernmr/quern/wire"
)

// carrier is what a message came by; a set of them is a sum.
type carrier uint8

const (
	byUDP carrier = 1 << iota
	byTCP
)

// ask is one message of a check: a question, or the answer to one.
type ask struct {
	From   string  `msgpack:"f"` // name of the process that sends it
	Nonce  uint64  `msgpack:"n"`
	By     carrier `msgpack:"b"` // what this message is sent by
	Answer carrier `msgpack:"a"` // what the question came by; 0: this is the question
}

func encodeAsk(a ask) []byte {
	body, err := wire.Marshal(&a)
	if err != nil {
		panic(err) // the type is our own
	}
	return append([]byte{metaVersion}, body...)
}

func decodeAsk(msg []byte) (ask, bool) {
	var a ask
	if len(msg) == 0 || len(msg) > memberlist.MetaMaxSize || msg[0] != metaVersion {
		return a, false
	}
	return a, wire.Unmarshal(msg[1:], &a) == nil
}

// verdict is what a check has found out, by direction.
type verdict struct {
	answered bool // at all: nothing is known otherwise
	out      bool // UDP from here arrives there
	in       bool // UDP from there arrives here
	back     bool // there they can connect to here
}

// checks are the questions that wait for answers.
type checks struct {
	mu      sync.Mutex
	waiting map[uint64]*verdict
	failing map[string]bool // troubles that have been said; watchUDP alone uses it
}

// Times of a check. Losing a packet is no trouble, losing all of them is.
const (
	checkFirst = time.Second      // after the first other member is found
	checkEvery = 30 * time.Second // afterwards
	checkSends = 4                // packets each way
	checkPause = 200 * time.Millisecond
	checkWait  = time.Second // for answers after the last packet
)

// watchUDP checks now and then whether packets pass, and at once when memberlist doubts it.
func (g *Gossip) watchUDP() {
	wait := checkFirst
	for {
		timer := time.NewTimer(wait)
		var name string
		select {
		case <-g.ctx.Done():
			timer.Stop()
			return
		case name = <-g.doubts:
			timer.Stop()
		case <-timer.C:
		}
		if n := g.pick(name); n != nil {
			v := g.check(n)
			if g.ctx.Err() != nil {
				return
			}
			g.report(n, v)
			wait = checkEvery
			if !v.answered || !v.out || !v.in || !v.back {
				wait /= 6 // so that it is also noticed when it works again
			}
		}
	}
}

// doubt has a member checked.
func (g *Gossip) doubt(name string) {
	select {
	case g.doubts <- name:
	default:
	}
}

// pick finds the member of a name, or any when it is empty; nil: there is none.
func (g *Gossip) pick(name string) *node {
	g.mu.Lock()
	defer g.mu.Unlock()
	if name != "" {
		return g.nodes[name]
	}
	for _, n := range g.nodes { // in random order
		if !n.suspect {
			return n
		}
	}
	return nil
}

// check asks a member over UDP and over TCP, and listens for what comes back.
func (g *Gossip) check(n *node) verdict {
	nonce := rand.Uint64()
	v := new(verdict)
	g.checks.mu.Lock()
	g.checks.waiting[nonce] = v
	g.checks.mu.Unlock()
	for range checkSends {
		g.list.SendBestEffort(n.list, encodeAsk(ask{From: g.name, Nonce: nonce, By: byUDP})) // see transport
		g.list.SendReliable(n.list, encodeAsk(ask{From: g.name, Nonce: nonce, By: byTCP}))   // no answer says it
		if !g.pause(checkPause) || g.verdictOf(v) == (verdict{true, true, true, true}) {
			break
		}
	}
	if g.verdictOf(v) != (verdict{true, true, true, true}) {
		g.pause(checkWait)
	}
	g.checks.mu.Lock()
	defer g.checks.mu.Unlock()
	delete(g.checks.waiting, nonce)
	return *v
}

func (g *Gossip) verdictOf(v *verdict) verdict {
	g.checks.mu.Lock()
	defer g.checks.mu.Unlock()
	return *v
}

// NotifyMsg implements memberlist.Delegate.
func (g *Gossip) NotifyMsg(msg []byte) {
	a, ok := decodeAsk(msg)
	switch {
	case !ok || g.ctx.Err() != nil:
	case a.Answer == 0:
		g.answer(a)
	default:
		g.checks.mu.Lock()
		defer g.checks.mu.Unlock()
		v := g.checks.waiting[a.Nonce]
		if v == nil {
			return
		}
		v.answered = true
		v.out = v.out || a.Answer == byUDP
		v.in = v.in || a.By == byUDP
		v.back = v.back || a.By == byTCP
	}
}

// mostAnswers bounds how many answers are being sent at a time.
const mostAnswers = 16

// answer tells a member, over UDP and over TCP, what its question came by.
func (g *Gossip) answer(a ask) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[a.From]
	if n == nil || g.closed || g.answering >= mostAnswers {
		return
	}
	g.answering++
	g.wait.Go(func() { // a stream may take its time
		<-g.ready
		g.list.SendBestEffort(n.list, encodeAsk(ask{From: g.name, Nonce: a.Nonce, By: byUDP, Answer: a.By}))
		g.list.SendReliable(n.list, encodeAsk(ask{From: g.name, Nonce: a.Nonce, By: byTCP, Answer: a.By}))
		g.mu.Lock()
		defer g.mu.Unlock()
		g.answering--
	})
}

// report logs what has begun or ceased to fail. What was not answered at all says
// nothing: the member may be gone.
func (g *Gossip) report(n *node, v verdict) {
	if !v.answered {
		return
	}
	for _, d := range []struct {
		works bool
		what  string
	}{
		{v.out, "UDP from here does not arrive there"},
		{v.in, "UDP from there does not arrive here"},
		{v.back, "they cannot connect to here by TCP"},
	} {
		key := d.what + n.addr
		switch {
		case !d.works && !g.checks.failing[key]:
			g.checks.failing[key] = true
			g.log.Error("gossip: "+d.what+"; members are found late and suspected falsely until both ways pass, UDP and TCP",
				"here", g.addr, "there", n.addr, "role", n.Role.String(), "member", n.ID)
		case d.works && g.checks.failing[key]:
			delete(g.checks.failing, key)
			g.log.Info("gossip: it passes again", "what failed", d.what, "here", g.addr, "there", n.addr, "member", n.ID)
		}
	}
}
