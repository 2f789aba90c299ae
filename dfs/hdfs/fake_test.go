package hdfs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"reflect"
	"slices"
	"sync"
	"testing"

	client "github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fakeHDFS is a NameNode with one file and its DataNodes, in memory.
type fakeHDFS struct {
	nodes   int               // number of DataNodes
	refuses string            // address of a DataNode that other DataNodes cannot reach
	fails   string            // address of a DataNode that fails once it has room bytes of a block
	room    int               // 0: it fails at the end of the block
	from    int               // number of the first block for which it fails
	silent  bool              // it closes the connection instead of reporting the failure
	stalled chan struct{}     // no DataNode receives packets until it is closed; nil: they do
	answers map[string][]bool // results of calls, before true

	mu       sync.Mutex
	calls    []string
	blocks   []uint64 // of the file
	last     uint64   // number of the last block
	lengths  map[uint64]uint64
	data     map[uint64][]byte
	excluded []string  // of the last request for a block
	modes    []uint64  // of new files and directories
	created  [2]uint64 // replication and size of blocks of the last new file
	existing map[string]bool
	isFile   bool   // getFileInfo finds the file
	owner    string // of all directories; empty: there are none. Calls come from u
}

// newFakeHDFS makes an FS of hdfs://nn with a fake NameNode.
func newFakeHDFS(t testing.TB, h *fakeHDFS, conf Conf) (*FS, *cluster) {
	h.lengths, h.data, h.existing = make(map[uint64]uint64), make(map[uint64][]byte), make(map[string]bool)
	f := New(Options{Conf: conf, User: "u", Dial: h.dial})
	c, err := f.connectTo("nn")
	if err != nil {
		t.Fatal(err)
	}
	f.clusters["nn"] = c
	lib := new(client.Client)
	private(lib, "defaults").Elem().Set(reflect.ValueOf(message("FsServerDefaults", "blockSize", uint64(1<<20), "replication", uint32(2))))
	c.clients = []*pooledConn{{client: lib, remote: h}}
	t.Cleanup(func() { f.Close() })
	return f, c
}

// refusal is an error response of a NameNode.
type refusal struct{ rejected }

func (r refusal) Error() string { return r.exception + ": " + r.message }

func nodeAt(i int) string { return fmt.Sprintf("10.0.0.%d:9866", i) }

// Execute implements remote.
func (h *fakeHDFS) Execute(method string, req, resp proto.Message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, method)
	result := true
	if list := h.answers[method]; len(list) > 0 {
		result, h.answers[method] = list[0], list[1:]
	}
	switch method {
	case "create", "mkdirs":
		h.modes = append(h.modes, field(part(req, "masked"), "perm").Uint())
		if method == "create" {
			h.created = [2]uint64{field(req, "replication").Uint(), field(req, "blockSize").Uint()}
			proto.Merge(resp, message("CreateResponse", "fs", message("HdfsFileStatus", "fileId", uint64(7))))
		}
	case "append":
		block := message("LocatedBlock", "b", h.block(h.blocks[len(h.blocks)-1]), "offset", uint64(0), "corrupt", false)
		proto.Merge(resp, message("AppendResponse", "block", block, "stat", h.status()))
	case "getFileInfo":
		if h.isFile {
			proto.Merge(resp, message("GetFileInfoResponse", "fs", h.status()))
		}
		if h.owner != "" {
			proto.Merge(resp, message("GetFileInfoResponse", "fs", message("HdfsFileStatus", "fileType", protoreflect.EnumNumber(1), "owner", h.owner,
				"permission", permission(0o1777))))
		}
	case "setPermission":
		if h.owner != "u" {
			return refusal{rejected{"org.apache.hadoop.security.AccessControlException", "Permission denied. user=u is not the owner"}}
		}
	case "rename2":
		to := field(req, "dst").String()
		if h.existing[to] && !field(req, "overwriteDest").Bool() {
			return refusal{rejected{"org.apache.hadoop.fs.FileAlreadyExistsException", to + " exists"}}
		}
		h.existing[to] = true
	case "addBlock":
		h.setLength(req, "previous")
		return h.addBlock(req, resp)
	case "abandonBlock":
		id := field(part(req, "b"), "blockId").Uint()
		h.blocks = slices.DeleteFunc(h.blocks, func(b uint64) bool { return b == id })
	case "complete":
		h.setLength(req, "last")
		proto.Merge(resp, message("CompleteResponse", "result", result))
	case "delete":
		proto.Merge(resp, message("DeleteResponse", "result", result))
	}
	return nil
}

// setLength records the length of a finished block in a request.
func (h *fakeHDFS) setLength(req proto.Message, name string) {
	if has(req, name) {
		b := part(req, name)
		h.lengths[field(b, "blockId").Uint()] = field(b, "numBytes").Uint()
	}
}

func (h *fakeHDFS) addBlock(req, resp proto.Message) error {
	h.excluded = nil
	for _, n := range parts(req, "excludeNodes") {
		h.excluded = append(h.excluded, fmt.Sprintf("%s:%d", field(part(n, "id"), "ipAddr"), field(part(n, "id"), "xferPort").Uint()))
	}
	var locs []proto.Message
	for i := 1; i <= h.nodes && len(locs) < 2; i++ {
		if !slices.Contains(h.excluded, nodeAt(i)) {
			locs = append(locs, h.node(i))
		}
	}
	if len(locs) == 0 {
		return refusal{rejected{"java.io.IOException", "File /f could only be written to 0 of the 1 minReplication nodes"}}
	}
	h.last++
	h.blocks = append(h.blocks, h.last)
	proto.Merge(resp, message("AddBlockResponse", "block", message("LocatedBlock", "b", h.block(h.last), "offset", uint64(0), "corrupt", false, "locs", locs)))
	return nil
}

// block describes a block by its number.
func (h *fakeHDFS) block(id uint64) proto.Message {
	return message("ExtendedBlock", "poolId", "p", "blockId", id, "generationStamp", uint64(1), "numBytes", h.lengths[id])
}

// status describes the file.
func (h *fakeHDFS) status() proto.Message {
	return message("HdfsFileStatus", "fileType", protoreflect.EnumNumber(2), "fileId", uint64(7), "blocksize", h.created[1], "permission", permission(0o644))
}

// node describes a DataNode.
func (h *fakeHDFS) node(i int) proto.Message {
	return message("DatanodeInfo", "id", message("DatanodeID", "ipAddr", fmt.Sprint("10.0.0.", i), "hostName", "h", "datanodeUuid", "u",
		"xferPort", uint32(9866), "infoPort", uint32(1), "ipcPort", uint32(2)))
}

// content returns the file. It fails if the NameNode knows other lengths than the DataNodes.
func (h *fakeHDFS) content(t *testing.T) []byte {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []byte
	for _, id := range h.blocks {
		if h.lengths[id] != uint64(len(h.data[id])) {
			t.Errorf("block %d: the NameNode knows %d bytes, the DataNode has %d", id, h.lengths[id], len(h.data[id]))
		}
		all = append(all, h.data[id]...)
	}
	return all
}

func (h *fakeHDFS) count(method string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.calls {
		if m == method {
			n++
		}
	}
	return n
}

// dial connects to a DataNode.
func (h *fakeHDFS) dial(_ context.Context, _, addr string) (net.Conn, error) {
	clientEnd, nodeEnd := net.Pipe()
	go func() {
		defer nodeEnd.Close()
		h.receive(addr, bufio.NewReader(nodeEnd), nodeEnd) // after an error it closes the connection
	}()
	return clientEnd, nil
}

// receive receives a block as the first DataNode of its pipeline.
func (h *fakeHDFS) receive(addr string, in *bufio.Reader, out io.Writer) error {
	if _, err := in.Discard(len(writeOp)); err != nil {
		return err
	}
	size, err := binary.ReadUvarint(in)
	if err != nil {
		return err
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(in, body); err != nil {
		return err
	}
	op := message("OpWriteBlock")
	if err := proto.Unmarshal(body, op); err != nil {
		return err
	}
	id := field(part(part(part(op, "header"), "baseHeader"), "block"), "blockId").Uint()
	pipeline := []string{addr}
	for _, n := range parts(op, "targets") {
		pipeline = append(pipeline, fmt.Sprintf("%s:%d", field(part(n, "id"), "ipAddr"), field(part(n, "id"), "xferPort").Uint()))
	}
	answer := message("BlockOpResponse", "status", protoreflect.EnumNumber(0), "firstBadLink", "")
	if slices.Contains(pipeline[1:], h.refuses) {
		answer = message("BlockOpResponse", "status", protoreflect.EnumNumber(1), "firstBadLink", h.refuses)
	}
	if body, err = proto.Marshal(answer); err != nil {
		return err
	}
	if _, err := out.Write(protowire.AppendBytes(nil, body)); err != nil {
		return err
	}
	if h.stalled != nil {
		<-h.stalled
	}
	for {
		seqno, data, last, err := readPacket(in)
		if err != nil {
			return err
		}
		h.mu.Lock()
		h.data[id] = append(h.data[id], data...)
		bad := slices.Index(pipeline, h.fails)
		failed := bad >= 0 && int(id) >= h.from && (last || h.room > 0 && len(h.data[id]) > h.room)
		h.mu.Unlock()
		if failed && h.silent {
			return nil
		}
		ack := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), protowire.EncodeZigZag(seqno))
		for i := range pipeline {
			status := uint64(0)
			if failed && i == bad {
				status = 1
			}
			ack = protowire.AppendVarint(protowire.AppendTag(ack, 2, protowire.VarintType), status)
		}
		if _, err := out.Write(protowire.AppendBytes(nil, ack)); err != nil || last {
			return err
		}
		if failed {
			_, err := io.Copy(io.Discard, in) // until the writer has read the acknowledgement
			return err
		}
	}
}

// readPacket reads a packet with correct checksums.
func readPacket(in io.Reader) (seqno int64, data []byte, last bool, err error) {
	var lengths [6]byte
	if _, err := io.ReadFull(in, lengths[:]); err != nil {
		return 0, nil, false, err
	}
	head := make([]byte, binary.BigEndian.Uint16(lengths[4:]))
	body := make([]byte, binary.BigEndian.Uint32(lengths[:])-4)
	header := message("PacketHeader")
	_, errHead := io.ReadFull(in, head)
	_, errBody := io.ReadFull(in, body)
	if err := errors.Join(errHead, errBody, proto.Unmarshal(head, header)); err != nil {
		return 0, nil, false, err
	}
	data = body[len(body)-int(field(header, "dataLen").Int()):]
	sums := body[:len(body)-len(data)]
	for rest := data; len(rest) > 0; rest = rest[min(512, len(rest)):] {
		sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(rest[:min(512, len(rest))], crc32.MakeTable(crc32.Castagnoli)))
		if !bytes.HasPrefix(sums, sum) {
			return 0, nil, false, errChecksum
		}
		sums = sums[4:]
	}
	return field(header, "seqno").Int(), data, field(header, "lastPacketInBlock").Bool(), nil
}
