package mix

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/sim/papers"
)

// textBytes is the size of the inputs of the sort and of the grep.
const textBytes = 16 * block

func (b *bench) tables() string { return b.Path("scale-" + b.Scale) }

// in returns the directory of a seed's input.
func (b *bench) in(seed uint64) string { return fmt.Sprintf("%s/in/%d", b.hdfs.URL(), seed) }

// writeInput writes a seed's input once: files of up to a block, of whole lines, each on a
// random node.
func (b *bench) writeInput(seed uint64) error {
	if b.written[seed] {
		return nil
	}
	tables, err := filepath.Glob(filepath.Join(b.tables(), "*.tbl"))
	if err != nil {
		return err
	}
	r := papers.Rand(seed, "mix", 0)
	for _, file := range append(tables, b.Path("lines"), b.Path("text")) {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".tbl")
		perNode := make([]int, nodes)
		for i := 0; len(content) > 0; i++ {
			piece := wholeLines(content)
			content = content[len(piece):]
			node := r.IntN(nodes)
			perNode[node]++
			to := fmt.Sprintf("%s/%s/%03d.tbl", b.in(seed), name, i)
			if err := testbed.Put(b.hdfs, bytes.NewReader(piece), to, b.hdfs.DataNodes[node], nil); err != nil {
				return err
			}
		}
		b.Logf("seed %d: blocks of %s by node: %v", seed, name, perNode)
	}
	b.written[seed] = true
	return nil
}

// wholeLines returns as many whole lines as fit into a block.
func wholeLines(content []byte) []byte {
	if len(content) <= block {
		return content
	}
	return content[:1+bytes.LastIndexByte(content[:block], '\n')]
}
