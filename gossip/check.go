package gossip

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/quernmr/quern/wire"
)

// transportKind is UDP or TCP.
type transportKind uint8

const (
	byUDP transportKind = 1 << iota
	byTCP
)

// checkMessage is a message of a check: a question or an answer.
type checkMessage struct {
	From   string        `msgpack:"f"` // name of the sending process
	Nonce  uint64        `msgpack:"n"`
	By     transportKind `msgpack:"b"` // transport of this message
	Answer transportKind `msgpack:"a"` // transport of the question; 0: this is a question
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

// checkResult says which transports work between this process and another one.
type checkResult struct {
	answered bool // false: nothing is known
	udpOut   bool // UDP packets reach the other process
	udpIn    bool // UDP packets of the other process arrive
	tcpIn    bool // the other process can connect to this one by TCP
}

// checks has the state of running checks.
type checks struct {
	mu      sync.Mutex
	waiting map[uint64]*checkResult
	failing map[string]bool // failures that were logged and continue; only watchUDP uses it
}

// Times of a check. Lost packets are normal: a check fails only if all packets are lost.
const (
	checkFirst = time.Second      // after the first other member is found
	checkEvery = 30 * time.Second // between later checks
	checkSends = 4                // maximum number of rounds of questions
	checkPause = 200 * time.Millisecond
	checkWait  = time.Second // for answers to the last question
)

// watchUDP checks other members periodically. It checks a member at once if memberlist reports that
// UDP to it fails.
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
			result := g.check(n)
			if g.ctx.Err() != nil {
				return
			}
			g.report(n, result)
			wait = checkEvery
			if !result.answered || !result.udpOut || !result.udpIn || !result.tcpIn {
				wait /= 6 // to notice sooner that it works again
			}
		}
	}
}

// requestCheck asks watchUDP to check a member soon.
func (g *Gossip) requestCheck(name string) {
	select {
	case g.checkRequests <- name:
	default:
	}
}

// pick returns the member with this name, or a random one if the name is empty. It returns nil if
// there is none.
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
	result := new(checkResult)
	g.checks.mu.Lock()
	g.checks.waiting[nonce] = result
	g.checks.mu.Unlock()
	for range checkSends {
		g.list.SendBestEffort(n.list, encodeCheck(checkMessage{From: g.name, Nonce: nonce, By: byUDP})) // the transport logs errors
		g.list.SendReliable(n.list, encodeCheck(checkMessage{From: g.name, Nonce: nonce, By: byTCP}))   // if it fails, there is no answer
		if !g.pause(checkPause) || g.resultOf(result) == (checkResult{true, true, true, true}) {
			break
		}
	}
	if g.resultOf(result) != (checkResult{true, true, true, true}) {
		g.pause(checkWait)
	}
	g.checks.mu.Lock()
	defer g.checks.mu.Unlock()
	delete(g.checks.waiting, nonce)
	return *result
}

func (g *Gossip) resultOf(result *checkResult) checkResult {
	g.checks.mu.Lock()
	defer g.checks.mu.Unlock()
	return *result
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
		result := g.checks.waiting[a.Nonce]
		if result == nil {
			return
		}
		result.answered = true
		result.udpOut = result.udpOut || a.Answer == byUDP
		result.udpIn = result.udpIn || a.By == byUDP
		result.tcpIn = result.tcpIn || a.By == byTCP
	}
}

// maxAnswers is the maximum number of answers that are sent at the same time.
const maxAnswers = 16

// answer sends a member answers over UDP and over TCP. They have the transport of its question.
func (g *Gossip) answer(a checkMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[a.From]
	if n == nil || g.closed || g.answering >= maxAnswers {
		return
	}
	g.answering++
	g.goroutines.Go(func() { // TCP may block
		<-g.ready
		g.list.SendBestEffort(n.list, encodeCheck(checkMessage{From: g.name, Nonce: a.Nonce, By: byUDP, Answer: a.By}))
		g.list.SendReliable(n.list, encodeCheck(checkMessage{From: g.name, Nonce: a.Nonce, By: byTCP, Answer: a.By}))
		g.mu.Lock()
		defer g.mu.Unlock()
		g.answering--
	})
}

// report logs directions that have begun or stopped to fail. Without any answer it logs nothing:
// the member may have left.
func (g *Gossip) report(n *node, result checkResult) {
	if !result.answered {
		return
	}
	for _, d := range []struct {
		works bool
		what  string
	}{
		{result.udpOut, "UDP packets do not reach that member"},
		{result.udpIn, "UDP packets from that member do not arrive"},
		{result.tcpIn, "that member cannot connect to this one by TCP"},
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
