package gossip

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/listen/listentest"
)

// header is a header of a push-pull or user message, with one number.
func header(kind byte, name string, n uint32) []byte {
	head := append([]byte{kind, 0x81, 0xa0 | byte(len(name))}, name...)
	return append(head, 0xce, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func labelled(message []byte) []byte {
	return append(append([]byte{typeLabel, byte(len(defaultLabel))}, defaultLabel...), message...)
}

func TestStreams(t *testing.T) {
	for name, c := range map[string]struct {
		sent []byte
		want error
	}{
		"members":          {header(typePushPull, "Nodes", maxMembers), nil},
		"many members":     {header(typePushPull, "Nodes", maxMembers+1), errRefusedStream},
		"a million":        {header(typePushPull, "Nodes", 1<<20), errRefusedStream},
		"user state":       {header(typePushPull, "UserStateLen", 20<<20), errRefusedStream},
		"user message":     {header(typeUser, "UserMsgLen", maxUserData), nil},
		"long message":     {header(typeUser, "UserMsgLen", 20<<20), errRefusedStream},
		"compressed":       {[]byte{typeCompress, 0x80}, errRefusedStream},
		"header as a list": {[]byte{typePushPull, 0x93, 0xce, 0, 0x10, 0, 0, 0, 0xc2}, errRefusedStream},
		"endless header":   {append([]byte{typePushPull, 0x8f}, bytes.Repeat([]byte{0xdb, 0, 0, 0, 1, 'x'}, 100)...), errRefusedStream},
		"encrypted":        {[]byte{10, 1, 2}, nil},
		"ping":             {[]byte{0, 0x80}, nil},
		"cut off":          {[]byte{typePushPull, 0x81, 0xa5}, nil}, // memberlist refuses it
	} {
		for _, sent := range [][]byte{c.sent, labelled(c.sent)} {
			s := &stream{in: bufio.NewReader(bytes.NewReader(sent)), left: maxStream}
			got, err := io.ReadAll(s)
			if !errors.Is(err, c.want) || c.want == nil && !bytes.Equal(got, sent) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
	long := &stream{in: bufio.NewReader(io.MultiReader(bytes.NewReader([]byte{0}), zeros{})), left: maxStream}
	if n, err := io.Copy(io.Discard, long); n != maxStream || !errors.Is(err, errRefusedStream) {
		t.Errorf("%d bytes of an endless stream, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestPackets(t *testing.T) {
	compressed, ping := []byte{typeCompress, 0x80}, []byte{0, 0x80}
	compound := func(parts ...[]byte) []byte {
		packet := []byte{typeCompound, byte(len(parts))}
		for _, p := range parts {
			packet = append(packet, byte(len(p)>>8), byte(len(p)))
		}
		return append(packet, bytes.Join(parts, nil)...)
	}
	for name, c := range map[string]struct {
		packet []byte
		want   bool
	}{
		"ping": {ping, false}, "compressed": {compressed, true},
		"second": {compound(ping, compressed), true}, "none": {compound(ping, ping), false}, "nested": {compound(ping, compound(compound(compressed))), true},
		"with checksum": {append([]byte{typeCRC, 1, 2, 3, 4}, compressed...), true}, "cut off": {[]byte{typeCompound, 9, 0}, false}, "empty": {nil, false},
	} {
		for _, packet := range [][]byte{c.packet, labelled(c.packet)} {
			if got := hasCompressed(packet); got != c.want {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

// FuzzStream checks that no beginning of a stream takes much memory.
func FuzzStream(f *testing.F) {
	f.Add(labelled(header(typePushPull, "Nodes", 3)))
	f.Add(header(typeUser, "UserMsgLen", 1<<30))
	f.Fuzz(func(t *testing.T, sent []byte) {
		membound.Bound{Free: 1 << 20, PerByte: 64}.Check(t, len(sent), func() {
			if err := checkStream(bufio.NewReader(bytes.NewReader(sent))); err != nil && !errors.Is(err, errRefusedStream) && !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			hasCompressed(sent)
		})
	})
}

// TestAnnouncedMembers: a stream of a few bytes that announces a million members takes no memory for them.
func TestAnnouncedMembers(t *testing.T) {
	p := startProcess(t, Member{ID: "jt1", Role: JobTracker})
	sent := labelled(header(typePushPull, "Nodes", 1<<20))
	membound.Bound{Free: 8 << 20}.Check(t, len(sent), func() {
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(sent); err != nil {
			t.Fatal(err)
		}
		io.ReadAll(conn) // until memberlist closes it
	})
}

// TestSilentConnections: connections that send nothing or a byte are closed, and others can join.
func TestSilentConnections(t *testing.T) {
	one := startProcessWith(t, Config{
		Self:   Member{ID: "jt1", Role: JobTracker},
		limits: listen.Limits{PerAddress: 50, Unknown: time.Hour},
		tune: func(c *memberlist.Config) {
			shortenTimes(c)
			c.TCPTimeout = time.Hour // only the limit acts
		},
	})
	for _, sent := range []string{"", "\xf4"} {
		listentest.Hold(t, one.Addr(), 1000, sent).AwaitLeft(t, 50)
	}
	two := startProcess(t, Member{ID: "jt2", Role: JobTracker}, one.Addr())
	<-two.JoinTried()
	if _, ok := two.Find(JobTracker, "jt1"); !ok {
		t.Error("a second process cannot join")
	}
}
