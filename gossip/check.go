package gossip

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/quernmr/quern/wire"
)

// transportKind is how a message is sent; a set of them is a sum.
type transportKind uint8

const (
	byUDP transportKind = 1 << iota
	byTCP
)

// checkMessage is one message of a check: a question, or an answer.
type checkMessage struct {
	From   string        `msgpack:"f"` // name of the sending process
	Nonce  uint64        `msgpack:"n"`
	By     transportKind `msgpack:"b"` // how this message is sent
	Answer transportKind `msgpack:"a"` // how the question arrived; 0: this is the question
}

func encodeCheck(a checkMessage) []byte {
	body, err := wire.Marshal(&a)
	if err != nil {
		panic(err) // this type can always be encoded
	}
	return append([]byte{metaVersion}, body...)
}

func decodeCheck(msg []byte) (checkMessage, bool) {
	var a checkMessage
	if len(msg) == 0 || len(msg) > memberlist.MetaMaxSize || msg[0] != metaVersion {
		return a, false
	}
	return a, wire.Unmarshal(msg[1:], &a) == nil
}

// checkResult says which directions work between this process and another one.
type checkResult struct {
	answered bool // false: nothing is known
	out      bool // UDP to the other process works
	in       bool // UDP from the other process works
	back     bool // the other process can connect to this one by TCP
}

// checks has the questions without an answer yet.
type checks struct {
	mu      sync.Mutex
	waiting map[uint64]*checkResult
	failing map[string]bool // failures that were logged; only watchUDP uses it
}

// Times of a check. A lost packet is normal; the check fails only if all are lost.
const (
	checkFirst = time.Second      // after the first other member is found
	checkEvery = 30 * time.Second // afterwards
	checkSends = 4                // packets each way
	checkPause = 200 * time.Millisecond
	checkWait  = time.Second // for answers after the last packet
)

// watchUDP checks other members periodically, and at once if memberlist reports that UDP
// to a member fails.
func (g *Gossip) watchUDP() {
	wait := checkFirst
	for {
		timer := time.NewTimer(wait)
		var name string
		select {
		case <-g.ctx.Done():
			timer.Stop()
			return
		case name = <-g.checkRequests:
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
				wait /= 6 // to notice soon that it works again
			}
		}
	}
}

// requestCheck has watchUDP check a member soon.
func (g *Gossip) requestCheck(name string) {
	select {
	case g.checkRequests <- name:
	default:
	}
}

// pick returns the member of a name, or a random one if the name is empty. It returns nil
// if there is none.
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

// check sends questions to a member over UDP and over TCP, and collects the answers.
func (g *Gossip) check(n *node) checkResult {
	nonce := rand.Uint64()
	v := new(checkResult)
	g.checks.mu.Lock()
	g.checks.waiting[nonce] = v
	g.checks.mu.Unlock()
	for range checkSends {
		g.list.SendBestEffort(n.list, encodeCheck(checkMessage{From: g.name, Nonce: nonce, By: byUDP})) // transport logs errors
		g.list.SendReliable(n.list, encodeCheck(checkMessage{From: g.name, Nonce: nonce, By: byTCP}))   // a missing answer shows errors
		if !g.pause(checkPause) || g.resultOf(v) == (checkResult{true, true, true, true}) {
			break
		}
	}
	if g.resultOf(v) != (checkResult{true, true, true, true}) {
		g.pause(checkWait)
	}
	g.checks.mu.Lock()
	defer g.checks.mu.Unlock()
	delete(g.checks.waiting, nonce)
	return *v
}

func (g *Gossip) resultOf(v *checkResult) checkResult {
	g.checks.mu.Lock()
	defer g.checks.mu.Unlock()
	return *v
}

// NotifyMsg implements memberlist.Delegate.
func (g *Gossip) NotifyMsg(msg []byte) {
	a, ok := decodeCheck(msg)
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

// maxAnswers bounds how many answers are sent at the same time.
const maxAnswers = 16

// answer tells a member, over UDP and over TCP, how its question arrived.
func (g *Gossip) answer(a checkMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[a.From]
	if n == nil || g.closed || g.answering >= maxAnswers {
		return
	}
	g.answering++
	g.wait.Go(func() { // TCP may block
		<-g.ready
		g.list.SendBestEffort(n.list, encodeCheck(checkMessage{From: g.name, Nonce: a.Nonce, By: byUDP, Answer: a.By}))
		g.list.SendReliable(n.list, encodeCheck(checkMessage{From: g.name, Nonce: a.Nonce, By: byTCP, Answer: a.By}))
		g.mu.Lock()
		defer g.mu.Unlock()
		g.answering--
	})
}

// report logs directions that began or stopped to fail. Without any answer it logs
// nothing: the member may be gone.
func (g *Gossip) report(n *node, v checkResult) {
	if !v.answered {
		return
	}
	for _, d := range []struct {
		works bool
		what  string
	}{
		{v.out, "UDP packets do not reach that member"},
		{v.in, "UDP packets from that member do not arrive"},
		{v.back, "that member cannot connect to this one by TCP"},
	} {
		key := d.what + n.addr
		switch {
		case !d.works && !g.checks.failing[key]:
			g.checks.failing[key] = true
			g.log.Error("gossip: "+d.what+"; until UDP and TCP pass both ways, members are found late and suspected falsely",
				"here", g.addr, "there", n.addr, "role", n.Role.String(), "member", n.ID)
		case d.works && g.checks.failing[key]:
			delete(g.checks.failing, key)
			g.log.Info("gossip: a failed direction works again", "what failed", d.what, "here", g.addr, "there", n.addr, "member", n.ID)
		}
	}
}
