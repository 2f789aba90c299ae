package sim

import (
	"fmt"
	"hash"
	"hash/fnv"

	jobtracker "github.com/quernmr/quern/jobtracker/core"
	tasktracker "github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// decisions is a digest of the commands of all cores in a run. If two builds have equal digests,
// their cores gave the same commands in the same order. The zero value digests nothing.
type decisions struct{ sum hash.Hash64 }

func newDecisions() decisions { return decisions{fnv.New64a()} }

// add adds a command of a node's core.
func (d decisions) add(w *world, node string, command any) {
	if d.sum == nil {
		return
	}
	detail := ""
	switch c := command.(type) {
	case jobtracker.Send:
		detail = fmt.Sprintf("%T", c.Message)
	case jobtracker.Reply:
		detail = fmt.Sprint(c.Err)
	case tasktracker.Send:
		detail = fmt.Sprintf("%T", c.Message)
	case tasktracker.SendWorker:
		detail = fmt.Sprintf("%T", c.Message)
	}
	body, err := wire.Marshal(command)
	if err != nil {
		w.fail("decision %T: %v", command, err)
	}
	fmt.Fprintf(d.sum, "%v %s %T %s %d ", w.now, node, command, detail, len(body))
	d.sum.Write(body)
}

func (d decisions) value() uint64 {
	if d.sum == nil {
		return 0
	}
	return d.sum.Sum64()
}
