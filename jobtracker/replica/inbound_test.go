package replica

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/internal/membound"
)

// text encodes a short text.
func text(s string) []byte { return append([]byte{0xa0 | byte(len(s))}, s...) }

// manyEntries returns a request to append n empty entries, of a byte each.
func manyEntries(n int) []byte {
	request := append([]byte{0, 0x81}, text("Entries")...)
	request = binary.BigEndian.AppendUint32(append(request, 0xdd), uint32(n))
	return append(request, bytes.Repeat([]byte{0x80}, n)...)
}

// snapshotRequest returns a request to install a snapshot, with its bytes.
func snapshotRequest(data string) []byte {
	return append(slices.Concat([]byte{installSnapshot, 0x82}, text("Size"), []byte{byte(len(data))}, text("Leader"), []byte{0xc4, 3, 'a', 'b', 'c'}), data...)
}

// scanned returns how many requests end within bytes that come one by one.
func scanned(p []byte) (ended int, err error) {
	var s requestScan
	for i := range p {
		inside := s.inside
		if err := s.next(p[i : i+1]); err != nil {
			return ended, err
		}
		if !s.inside && (inside || i == 0) {
			ended++
		}
	}
	return ended, nil
}

func TestRequests(t *testing.T) {
	small := manyEntries(16)
	for name, c := range map[string]struct {
		sent  []byte
		ended int
		want  error
	}{
		"batch":             {small, 1, nil},
		"two":               {slices.Concat(small, small), 2, nil},
		"cut off":           {small[:len(small)-1], 0, nil},
		"snapshot":          {slices.Concat(snapshotRequest("\xdd\xff\xff\xff\xff"), small), 2, nil},
		"empty snapshot":    {slices.Concat(snapshotRequest(""), small), 2, nil},
		"no map":            {[]byte{0, 0x91, 0x80}, 0, errRequest},
		"entries":           {manyEntries(maxRequestValues), 0, errRequest},
		"announced entries": {manyEntries(1 << 20)[:20], 0, nil},
		"long value":        {slices.Concat([]byte{1, 0x81}, text("ID"), []byte{0xc6, 0xff, 0xff, 0xff, 0xff}), 0, errRequest},
		"long name":         {[]byte{1, 0x81, 0xd9, 200}, 0, errRequest},
		"deep":              {slices.Concat([]byte{1, 0x81}, text("ID"), bytes.Repeat([]byte{0x91}, 10)), 0, errRequest},
		"time":              {slices.Concat([]byte{0, 0x81}, text("At"), []byte{0xd7, 0xff, 1, 2, 3, 4, 5, 6, 7, 8}), 1, nil},
		"numbers":           {slices.Concat([]byte{0, 0x82}, text("a"), []byte{0xcd, 1, 2}, text("b"), []byte{0xd3, 1, 2, 3, 4, 5, 6, 7, 8}), 1, nil},
	} {
		if ended, err := scanned(c.sent); ended != c.ended || !errors.Is(err, c.want) {
			t.Errorf("%s: %d requests, %v", name, ended, err)
		}
	}
}

// FuzzRequests checks that pieces of any length give the same result, and that no request takes much
// memory.
func FuzzRequests(f *testing.F) {
	f.Add(manyEntries(16), uint8(3))
	f.Add(snapshotRequest("data"), uint8(1))
	f.Fuzz(func(t *testing.T, sent []byte, piece uint8) {
		var whole, parts requestScan
		var err error
		membound.Bound{Free: 1 << 20, PerByte: 1}.Check(t, len(sent), func() {
			whole = requestScan{}
			err = whole.next(sent)
		})
		var errParts error
		for part := range slices.Chunk(sent, int(piece)+1) {
			if errParts = parts.next(part); errParts != nil {
				break
			}
		}
		if (err == nil) != (errParts == nil) || err == nil && (whole.inside != parts.inside || whole.skip != parts.skip || whole.values != parts.values) {
			t.Fatalf("%+v, %v at once, %+v, %v in pieces", whole, err, parts, errParts)
		}
	})
}

// TestInflatedRequest: a request of 200 KB that would take 40 MB is refused, and the cluster goes on.
func TestInflatedRequest(t *testing.T) {
	g := newGroup(t, 1, nil)
	g.commit("before")
	sent := manyEntries(200_000)
	membound.Bound{Free: 8 << 20, PerByte: 16}.Check(t, len(sent), func() {
		conn, err := net.Dial("tcp", g.nodes[0].Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.Write(sent) // fails if the other end has closed it already
		if answer, _ := io.ReadAll(conn); len(answer) > 0 {
			t.Errorf("the answer is %q", answer)
		}
	})
	g.commit("after")
}

// TestPausedRequest: a request that stops coming ends its connection, but silence between requests does not.
func TestPausedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := &inbound{Conn: near}
		request := manyEntries(1)
		go func() {
			far.Write(request)
			<-time.After(time.Hour)
			far.Write(request[:5])
		}()
		got, err := io.ReadAll(c)
		if len(got) != len(request)+5 || err == nil {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
	})
}

// TestSlowRequest: a request that comes byte by byte ends its connection. A long one on a slow network does not.
func TestSlowRequest(t *testing.T) {
	entry := slices.Concat([]byte{0x81}, text("Data"), []byte{0xc6, 0, 0x40, 0, 0}, make([]byte, 4<<20)) // 4 MiB
	long := slices.Concat([]byte{0, 0x81}, text("Entries"), []byte{0xdd, 0, 0, 0, 1}, entry)
	for name, c := range map[string]struct {
		request []byte
		piece   int
		pause   time.Duration
		whole   bool
	}{
		"bytes": {manyEntries(100), 1, 10 * time.Second, false},
		"slow":  {long, 130 << 10, 2 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				defer far.Close()
				for piece := range slices.Chunk(c.request, c.piece) {
					if _, err := far.Write(piece); err != nil {
						return
					}
					<-time.After(c.pause) // virtual
				}
			}()
			in := &inbound{Conn: near}
			got, err := io.ReadAll(in)
			in.Close()
			<-sent
			if whole := err == nil && len(got) == len(c.request); whole != c.whole {
				t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(c.request), err)
			}
		})
	}
}

// countedConn is a connection of package listen.
type countedConn struct {
	net.Conn
	known int
}

func (c *countedConn) Known() { c.known++ }

// TestKnown: the first request makes a peer known, or a long part of it; a byte does not.
func TestKnown(t *testing.T) {
	request := manyEntries(3)
	long := slices.Concat([]byte{0, 0x81}, text("ID"), []byte{0xc6, 0, 0x20, 0, 0}, make([]byte, firstPart))
	for name, c := range map[string]struct {
		sent  []byte
		known bool
	}{
		"byte": {request[:1], false}, "part": {request[:len(request)-1], false}, "request": {request, true},
		"request and a byte": {append(slices.Clone(request), 0), true}, "long": {long, true}, "long part": {long[:firstPart-1], false}, "nothing": {nil, false},
	} {
		near, far := net.Pipe()
		counted := &countedConn{Conn: near}
		go func() {
			far.Write(c.sent)
			far.Close()
		}()
		if _, err := io.ReadAll(&inbound{Conn: counted}); err != nil || (counted.known > 0) != c.known {
			t.Errorf("%s: known is %v, %v", name, counted.known > 0, err)
		}
		near.Close()
	}
}
