package hdfs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/trial"
)

// webBlock is a block as WebHDFS describes it.
type webBlock struct {
	Offset, Length int64
	Hosts          []string
	Names          []string
	TopologyPaths  []string
}

// webHDFS returns a file's blocks as WebHDFS lists them.
func webHDFS(t *testing.T, d *minicluster.Daemon, path string) []webBlock {
	t.Helper()
	body, err := d.Get(t.Context(), "/webhdfs/v1"+(&url.URL{Path: path}).EscapedPath()+"?op=GETFILEBLOCKLOCATIONS&user.name="+minicluster.Superuser)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		BlockLocations struct{ BlockLocation []webBlock }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.BlockLocations.BlockLocation
}

// Locate returns the same blocks as WebHDFS, file by file.
func TestLocateAgreesWithWebHDFS(t *testing.T) {
	c := cluster(t)
	f := client(t, c)
	top := newDir(t, c, f)
	for i, size := range []int{0, 1, blockSize, 2*blockSize + 1, 5 * blockSize} {
		local := client(t, c, dialFrom(c.DataNodes[i%4]))
		name := dfs.Join(top, fmt.Sprintf("f %d%%", i))
		write(t, local, name, randomBytes(size))
		awaitReplicas(t, local, name, 2)
	}
	if err := f.Mkdir(dfs.Join(top, "dir")); err != nil {
		t.Fatal(err)
	}
	located, err := dfs.Locate(dfs.Mux{"hdfs": f}, top)
	if err != nil {
		t.Fatal(err)
	}
	infos, err := f.List(top)
	if err != nil || len(infos) != len(located) {
		t.Fatalf("%d located, %d listed, %v", len(located), len(infos), err)
	}
	for i, file := range located {
		if file.Info != infos[i] {
			t.Errorf("located %+v, listed %+v", file.Info, infos[i])
		}
		if file.Dir {
			continue
		}
		for _, b := range file.Blocks {
			for _, r := range b.Replicas {
				d := daemonAt(c, r.Addr)
				if d == nil || d.ID != r.Host || d.Rack != r.Rack {
					t.Errorf("%s: no DataNode is %+v", file.Name, r)
				}
			}
		}
		blocks := webHDFS(t, c.NameNodes[0], strings.TrimPrefix(file.Name, c.URL()))
		if len(blocks) != len(file.Blocks) {
			t.Errorf("%s: %d blocks, WebHDFS has %d", file.Name, len(file.Blocks), len(blocks))
			continue
		}
		for i, b := range file.Blocks {
			if got, want := describe(b), describeWeb(blocks[i]); !slices.Equal(got, want) {
				t.Errorf("%s: block %d is %v, WebHDFS says %v", file.Name, i, got, want)
			}
		}
		one, err := f.Locate(file.Name)
		if err != nil || len(one) != 1 || one[0].Info != file.Info || len(one[0].Blocks) != len(file.Blocks) {
			t.Errorf("located alone, %s is %+v, %v", file.Name, one, err)
		}
	}
}

func describe(b dfs.Block) []string {
	all := []string{fmt.Sprint(b.Offset, b.Length)}
	for _, r := range b.Replicas {
		all = append(all, r.Host+" "+r.Rack+"/"+r.Addr)
	}
	slices.Sort(all)
	return all
}

func describeWeb(b webBlock) []string {
	all := []string{fmt.Sprint(b.Offset, b.Length)}
	for i, host := range b.Hosts {
		all = append(all, host+" "+b.TopologyPaths[i])
	}
	slices.Sort(all)
	return all
}

// A client on the machine of a DataNode with all blocks reads only from it, and Reads shows that.
func TestMeter(t *testing.T) {
	c := cluster(t)
	node := c.DataNodes[2]
	local := client(t, c, dialFrom(node))
	name, content := dfs.Join(newDir(t, c, local), "f"), randomBytes(4*blockSize)
	write(t, local, name, content)
	awaitReplicas(t, local, name, 2)
	file, err := local.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// Read the whole file in consecutive pieces.
	got := make([]byte, len(content))
	const piece = 10_007
	for off := 0; off < len(content); off += piece {
		if _, err := file.ReadAt(got[off:min(off+piece, len(content))], int64(off)); err != nil && err != io.EOF {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, content) {
		t.Error("ReadAt returned wrong content")
	}
	reads := file.(dfs.Metered).Reads()
	if len(reads) != 1 || reads[0].Addr != node.Addr() || reads[0].Bytes != int64(len(content)) || reads[0].Time <= 0 {
		t.Errorf("read %+v, want all %d bytes from %s", reads, len(content), node.Addr())
	}
	for _, off := range []int{3 * blockSize, 100, 5000, 70_000, 200_000, blockSize - 3, 0} {
		p := make([]byte, 50)
		if _, err := file.ReadAt(p, int64(off)); err != nil || !bytes.Equal(p, content[off:off+50]) {
			t.Errorf("at %d: %v", off, err)
		}
	}
}

// A task makes few calls to the NameNode, and then closes its connection.
func TestNameNodeCalls(t *testing.T) {
	c := cluster(t)
	nn := c.NameNodes[0]
	setup := client(t, c)
	top := newDir(t, c, setup)
	name := dfs.Join(top, "in")
	write(t, setup, name, randomBytes(3*blockSize))
	setup.Close()
	countCalls := func(do func(f *hdfs.FS)) *cutter {
		counted := &cutter{nameNode: nn.Addr()}
		// A DataNode that a busy machine slows down must not cost more calls.
		do(client(t, c, func(o *hdfs.Options) { o.Dial, o.Timeout = counted.dial, trial.Deadline }))
		return counted
	}
	count := func(counted *cutter) (all, completes int) { // without renewals, which only a slow write needs
		counted.mu.Lock()
		defer counted.mu.Unlock()
		t.Log(counted.methods)
		for _, method := range counted.methods {
			switch method {
			case "complete":
				completes++
			case "renewLease":
				continue
			}
			all++
		}
		return all, completes
	}
	writes := func(blocks int) func(*hdfs.FS) {
		return func(f *hdfs.FS) {
			dir := dfs.Join(top, fmt.Sprint("a", blocks))
			if err := f.Mkdir(dir); err != nil {
				t.Fatal(err)
			}
			write(t, f, dfs.Join(dir, "part"), randomBytes(blocks*blockSize-1))
			write(t, f, dfs.Join(dir, ".attempt"), []byte("manifest"))
			if err := f.RenameDir(dir, dir+"t"); err != nil {
				t.Fatal(err)
			}
		}
	}
	reader, one, two := countCalls(func(f *hdfs.FS) { read(t, f, name) }), countCalls(writes(1)), countCalls(writes(2))
	trial.Await(t, "end of all connections", func() bool { return connections(t, nn) == 0 })
	if n, _ := count(reader); n > 3 {
		t.Errorf("a task that only reads makes %d calls, want at most 3", n)
	}
	n, completes := count(one)
	if n -= completes - 2; n > 14 {
		t.Errorf("a task that writes one block makes %d calls, want at most 14", n)
	}
	more, completes := count(two)
	if more -= completes - 2; more > n+2 {
		t.Errorf("a task that writes two blocks makes %d calls, want at most 2 more than %d", more, n)
	}
}
