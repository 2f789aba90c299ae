package sim

import (
	"fmt"
	"strings"

	"github.com/quernmr/quern/dfs"
)

// inputBlock is the block size of input files, and the smallest split.
const inputBlock = 40

// rackOf is the rack that a tracker announces.
func rackOf(name string) string { return fmt.Sprintf("/r%d", name[len(name)-1]%2) }

// Locate places the blocks of input files on machines of trackers; some of these trackers do
// not exist. Other files, and every fourth input, have no location. The racks may differ from
// the racks that trackers announce.
func (f *processFS) Locate(name string) (located []dfs.Located, err error) {
	err = f.call("locate", name, "", func() error {
		located, err = dfs.Locate(f.fs(), name)
		return err
	})
	for i := range located {
		located[i].Blocks = blocksOf(&located[i].Info, max(taskTrackers, len(f.p.w.tts)))
	}
	return located, err
}

func blocksOf(file *dfs.Info, trackers int) (blocks []dfs.Block) {
	at := int(file.Name[len(file.Name)-1])
	if !strings.HasPrefix(file.Name, "mem://c/in/") || at%4 == 0 {
		return nil
	}
	for from := int64(0); from < file.Size; from += inputBlock {
		b := dfs.Block{Offset: from, Length: min(inputBlock, file.Size-from)}
		for k := range 2 {
			host := taskTrackerName((at + k + int(from)/inputBlock) % (trackers + 1))
			rack := rackOf(host)
			if at%3 == 0 {
				rack = "/elsewhere"
			}
			b.Replicas = append(b.Replicas, dfs.Replica{Host: host, Addr: host + ":9866", Rack: rack})
		}
		blocks = append(blocks, b)
	}
	return blocks
}
