package hdfs

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs"
)

// calls counts the NameNode calls of two jobs that differ only in their number of tasks. The
// difference, divided by the number of additional tasks, is the cost of a task.
func (b *bench) calls() error {
	c, err := b.startCluster(2, 1)
	if err != nil {
		return err
	}
	defer c.Close()
	count, err := newCounter(b.Ctx, b.hdfs.NameNodes[0].Addr())
	if err != nil {
		return err
	}
	defer count.listen.Close()
	dir, err := b.directory()
	if err != nil {
		return err
	}
	local := b.Path("text16384")
	if err := input.Text(local, 16<<10); err != nil {
		return err
	}
	if err := testbed.PutFile(b.hdfs, local, dfs.Join(dir, "in"), nil, nil); err != nil {
		return err
	}
	const few, many = 4, 36
	for _, kind := range []struct{ name, property, few, many, target string }{
		{"of a map", "mapreduce.input.fileinputformat.split.maxsize", "4096", "455", "≤ 3"},
		{"of a reduce that writes one block, with its share of the job's commit", "mapreduce.job.reduces", "4", "36", "≤ 14"},
	} {
		less, err := b.callsOf(c, count, dir, kind.property+"="+kind.few)
		if err != nil {
			return err
		}
		more, err := b.callsOf(c, count, dir, kind.property+"="+kind.many)
		if err != nil {
			return err
		}
		sum := 0.0
		var each []string
		for _, method := range slices.Sorted(maps.Keys(more)) {
			if n := float64(more[method]-less[method]) / (many - few); n >= 0.05 {
				sum += n
				each = append(each, fmt.Sprintf("%s %.1f", method, n))
			}
		}
		testbed.Row(kind.name, fmt.Sprintf("%.1f", sum), strings.Join(each, ", "), kind.target)
	}
	return b.fs.RemoveAll(dir)
}

// callsOf runs a job and counts its NameNode calls by method.
func (b *bench) callsOf(c *testbed.Cluster, count *counter, dir, property string) (map[string]int, error) {
	through := "hdfs://" + count.listen.Addr().String() + strings.TrimPrefix(dir, b.hdfs.URL())
	out := dfs.Join(through, "out")
	count.take()
	if _, err := c.Run(b.Ctx, c.Program("wordcount"), "-input", dfs.Join(through, "in"), "-output", out, "-D", property); err != nil {
		return nil, err
	}
	return count.take(), b.fs.RemoveAll(dfs.Join(dir, "out"))
}

// counter forwards connections to a NameNode and counts the requests.
type counter struct {
	listen net.Listener
	to     string

	mu    sync.Mutex
	calls map[string]int // by method
}

func newCounter(ctx context.Context, to string) (*counter, error) {
	listen, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &counter{listen: listen, to: to}
	go testbed.Serve(listen, c.forward)
	return c, nil
}

// take returns the counts since the last take.
func (c *counter) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = make(map[string]int)
	return calls
}

// forward forwards a connection until either end closes it.
func (c *counter) forward(from net.Conn) {
	to, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		io.Copy(from, to)
		from.Close()
	}()
	in := bufio.NewReader(from)
	// The client library first sends 7 bytes, then a frame with its identity.
	if _, err := io.CopyN(to, in, 7); err != nil {
		return
	}
	for greeted := false; ; greeted = true {
		head, err := in.Peek(4)
		if err != nil {
			return
		}
		frame := make([]byte, 4+binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(in, frame); err != nil {
			return
		}
		if greeted {
			c.mu.Lock()
			c.calls[method(frame[4:])]++
			c.mu.Unlock()
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// method returns the method's name, which begins the second of two headers in a request. Each
// header has a length prefix.
func method(request []byte) string {
	_, n := protowire.ConsumeBytes(request)
	header, _ := protowire.ConsumeBytes(request[max(n, 0):])
	_, _, n = protowire.ConsumeTag(header)
	name, n := protowire.ConsumeString(header[max(n, 0):])
	if n < 0 {
		return "?"
	}
	return name
}
