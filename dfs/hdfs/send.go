package hdfs

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs/sasl"
)

const (
	maxKept         = 32 << 20         // bytes kept of a block, for writing it to other DataNodes
	maxQueued       = 64               // packets between a writer and its sender: 4 MiB
	maxRewritePause = 4 * time.Second  // longest pause before writing a block again
	badNodeTime     = 10 * time.Minute // after a failed write, a DataNode gets no blocks for this time
	heartbeatTime   = 30 * time.Second // DataNodes give a silent writer up after a minute
)

// badNode is a DataNode with a failed write.
type badNode struct {
	node proto.Message
	at   time.Time
}

// sender sends the packets of a file, block by block. If a block's DataNodes fail, it abandons
// the block and sends the kept packets to others.
//
// The fields up to link are set before run; only run uses those after ended, until it is closed.
type sender struct {
	cluster   *cluster
	path      string
	settings  dfs.Creation
	mode      uint32
	id        uint64
	blockSize int64
	appending bool // the file was there before
	link      *link

	queue   chan *packet  // closed after the last packet
	free    chan *packet  // to use again
	aborted chan struct{} // closed by Abort
	ended   chan struct{} // closed when run has ended: with err, or as queue is closed

	err      error
	block    proto.Message // LocatedBlock; nil: none yet
	previous proto.Message // the previous block, an ExtendedBlock
	out      *blockStream  // nil between blocks
	sent     int64         // bytes of the block
	kept     []*packet     // of the block; none if it exceeds maxKept
}

func newSender(c *cluster, path string, settings dfs.Creation) *sender {
	return &sender{cluster: c, path: path, settings: settings, link: &link{cluster: c},
		queue: make(chan *packet, maxQueued), free: make(chan *packet, maxKept/packetSize+maxQueued),
		aborted: make(chan struct{}), ended: make(chan struct{})}
}

// hasEnded reports whether the sender has failed, since the queue is not closed.
func (s *sender) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// newPacket returns an empty packet. It makes one only if all others are kept, in the queue or
// being sent, so their number is limited.
func (s *sender) newPacket() *packet {
	select {
	case p := <-s.free:
		p.size, p.start, p.endBlock = 0, 0, false
		return p
	default:
		return new(packet)
	}
}

func (s *sender) recycle(packets ...*packet) {
	for _, p := range packets {
		select {
		case s.free <- p:
		default: // many blocks smaller than a packet
		}
	}
}

// run sends the packets of the queue until it is closed, or until the first error.
func (s *sender) run() {
	defer close(s.ended)
	if s.err = s.sendAll(); s.err != nil && s.out != nil {
		s.out.abort()
	}
}

func (s *sender) sendAll() error {
	heartbeat := time.NewTicker(heartbeatTime)
	defer heartbeat.Stop()
	for {
		var err error
		select {
		case p, ok := <-s.queue:
			if !ok {
				return s.finish()
			}
			err = s.send(p)
		case <-heartbeat.C:
			err = s.keepOpen()
		case <-s.aborted:
			return errAborted
		case <-s.cluster.fs.closed:
			return net.ErrClosed
		}
		if err != nil {
			return err
		}
	}
}

var errAborted = errors.New("the file is aborted")

// send sends a packet of the current block, and ends the block after its last one.
func (s *sender) send(p *packet) error {
	if s.block == nil {
		if err := s.begin(); err != nil {
			return err
		}
	}
	s.sent += int64(p.size)
	isKept, end := s.keep(p), p.endBlock
	if err := s.transmit(p); err != nil {
		if err := s.rewriteBlock(err, false); err != nil {
			return err
		}
	}
	if !isKept {
		s.recycle(p)
	}
	if end {
		return s.finish()
	}
	return nil
}

// transmit sends a packet to the block's DataNodes.
func (s *sender) transmit(p *packet) (err error) {
	if s.out == nil {
		if s.out, err = openBlock(s.cluster, s.block, s.link.dial); err != nil {
			return err
		}
	}
	return s.out.send(p)
}

// keep keeps a packet of the block, unless the block is too large for that.
func (s *sender) keep(p *packet) bool {
	if s.sent <= maxKept {
		s.kept = append(s.kept, p)
		return true
	}
	s.forget()
	return false
}

// forget recycles the kept packets.
func (s *sender) forget() {
	s.recycle(s.kept...)
	s.kept = s.kept[:0]
}

// keepOpen sends a heartbeat if a block is open.
func (s *sender) keepOpen() error {
	if s.block == nil {
		return nil
	}
	if err := s.out.heartbeat(); err != nil {
		return s.rewriteBlock(err, false)
	}
	return nil
}

// sendKept sends the kept packets.
func (s *sender) sendKept() error {
	for _, p := range s.kept {
		if err := s.transmit(p); err != nil {
			return err
		}
	}
	return nil
}

// finish waits until the block's replicas have it.
func (s *sender) finish() error {
	if s.block == nil {
		return nil
	}
	if err := s.out.finish(); err != nil {
		if err := s.rewriteBlock(err, true); err != nil {
			return err
		}
	}
	s.previous = part(s.block, "b")
	s.previous.ProtoReflect().Set(s.previous.ProtoReflect().Descriptor().Fields().ByName("numBytes"), value(uint64(s.sent)))
	s.block, s.out, s.sent = nil, nil, 0
	s.forget()
	s.link.close()
	return nil
}

// begin requests a block, preferably on DataNodes that have not failed.
func (s *sender) begin() error {
	request := func(exclude []proto.Message) (proto.Message, error) {
		resp := message("AddBlockResponse")
		var previous any
		if s.previous != nil {
			previous = s.previous
		}
		err := s.cluster.call("addBlock", message("AddBlockRequest", "src", s.path, "clientName", s.cluster.name,
			"previous", previous, "excludeNodes", exclude, "fileId", s.id), resp)
		if err != nil {
			return nil, err
		}
		return part(resp, "block"), nil
	}
	exclude := s.cluster.excluded()
	block, err := request(exclude)
	if err != nil && len(exclude) > 0 {
		block, err = request(nil)
	}
	if err != nil {
		return err
	}
	s.block = block
	return nil
}

// rewriteBlock abandons the block and writes its kept bytes to other DataNodes. If whole is set,
// it also completes the block.
func (s *sender) rewriteBlock(cause error, whole bool) error {
	if errors.Is(cause, sasl.ErrWeaker) || errors.Is(cause, ErrUnsupported) {
		return cause // other DataNodes have the same configuration
	}
	for pause := 50 * time.Millisecond; pause < maxRewritePause; pause *= 2 {
		if err := s.wait(pause); err != nil {
			return errors.Join(cause, err)
		}
		s.markBad(cause)
		s.link.close()
		if s.out != nil {
			s.out.abort()
			s.out = nil
		}
		if s.sent > maxKept {
			return fmt.Errorf("cannot write a block again after %d bytes, at most %d are kept: %w", s.sent, maxKept, cause)
		}
		if err := s.abandon(); err != nil {
			return errors.Join(cause, err)
		}
		if err := s.begin(); err != nil {
			return errors.Join(cause, err)
		}
		err := s.sendKept()
		if err == nil && whole {
			err = s.out.finish()
		}
		if err == nil {
			return nil
		}
		cause = err
	}
	return cause
}

// wait pauses, unless the file is aborted or the FS is closed.
func (s *sender) wait(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.aborted:
		return errAborted
	case <-s.cluster.fs.closed:
		return net.ErrClosed
	}
}

func (s *sender) abandon() error {
	return s.cluster.call("abandonBlock", message("AbandonBlockRequest", "b", part(s.block, "b"), "src", s.path,
		"holder", s.cluster.name, "fileId", s.id), message("AbandonBlockResponse"))
}

// markBad marks the failed DataNode as bad. If the error does not tell which one failed, it
// is the first one: the writer's connection goes there.
func (s *sender) markBad(cause error) {
	nodes := parts(s.block, "locs")
	if len(nodes) == 0 {
		return
	}
	which := 0
	if failed, ok := errors.AsType[*replicaError](cause); ok {
		which = failed.replica
	}
	if failed := s.link.failedNode(); failed != "" {
		which = max(slices.IndexFunc(nodes, func(n proto.Message) bool { return s.cluster.nodeAddr(n) == failed }), 0)
	}
	node := nodes[min(which, len(nodes)-1)]
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	s.cluster.badNodes[s.cluster.nodeAddr(node)] = badNode{node, time.Now()}
}

// nodeAddr returns a DataNode's address as it appears in responses of other DataNodes.
func (c *cluster) nodeAddr(node proto.Message) string {
	id := part(node, "id")
	return fmt.Sprintf("%s:%d", field(id, "ipAddr").String(), field(id, "xferPort").Uint())
}

func (c *cluster) excluded() (nodes []proto.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for addr, bad := range c.badNodes {
		if time.Since(bad.at) > badNodeTime {
			delete(c.badNodes, addr)
			continue
		}
		nodes = append(nodes, bad.node)
	}
	return nodes
}

// complete waits until the NameNode has completed the file. run has ended, here and in discard.
func (s *sender) complete() error {
	var last any
	if s.previous != nil {
		last = s.previous
	}
	began := time.Now()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		resp := message("CompleteResponse")
		err := s.cluster.call("complete", message("CompleteRequest", "src", s.path, "clientName", s.cluster.name,
			"last", last, "fileId", s.id), resp)
		if err != nil || field(resp, "result").Bool() {
			return err
		}
		if time.Since(began) > s.cluster.fs.options.RetryFor {
			return errors.New("too few DataNodes confirmed the last block")
		}
		if err := s.cluster.fs.wait(pause); err != nil {
			return err
		}
	}
}

// discard removes an unfinished file, or closes it without the block that was being appended.
func (s *sender) discard() error {
	s.link.close()
	if s.appending {
		var err error
		if s.block != nil {
			err = s.abandon()
		}
		return errors.Join(err, s.complete())
	}
	_, err := s.cluster.remove(s.path, false)
	return err
}
