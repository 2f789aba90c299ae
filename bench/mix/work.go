package mix

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/tpch/peers"
	"github.com/quernmr/quern/wire"
)

// work is a query, a sort or a grep.
type work struct {
	name    string
	query   bool
	program string
	answer  string // directory of its answer below the output
	args    func(in string) []string
}

// reduces of a query's jobs: one per tracker. The sort has one: to divide the keys among
// several it would first read much of its input outside map slots.
var reduces = fmt.Sprintf("mapreduce.job.reduces=%d", nodes)

// works lists the six queries, a sort and a grep.
func works() []work {
	var all []work
	for _, n := range peers.Queries() {
		w := work{name: fmt.Sprintf("query %d", n), query: true, program: "tpch", answer: "answer"}
		w.args = func(in string) []string { return []string{"-query", fmt.Sprint(n), "-tables", in, "-D", reduces} }
		if n == 6 {
			w.answer = "" // a flow of one job
		}
		all = append(all, w)
	}
	return append(all,
		work{name: "sort", program: "sort", args: func(in string) []string { return []string{"-input", in + "/lines"} }},
		work{name: "grep", program: "grep", args: func(in string) []string { return []string{"-e", input.Needle, "-input", in + "/text"} }})
}

// once computes a work on a seed's input and returns the time of its command.
func (b *bench) once(w work, seed uint64, out string) (time.Duration, error) {
	return b.cluster.Run(b.Ctx, append([]string{b.cluster.Program(w.program), "-output", out}, w.args(b.in(seed))...)...)
}

// output returns a new output directory.
func (b *bench) output() string {
	b.made++
	return fmt.Sprintf("%s/out/%d", b.hdfs.URL(), b.made)
}

// check compares an answer with the work's first one, and removes it. No measurement runs
// meanwhile, so it turns the slow reads off.
func (b *bench) check(w work, seed uint64, out string) error {
	b.slow.Set(block, 0, 0)
	defer b.slow.Set(block, localRead, remoteRead)
	f, err := testbed.Client(b.hdfs, nil, nil)
	if err != nil {
		return err
	}
	defer f.Close()
	dir := out
	if w.answer != "" {
		dir = dfs.Join(out, w.answer)
	}
	digest, err := testbed.Digest(f, dir)
	if err != nil {
		return err
	}
	key := fmt.Sprint(seed, " ", w.name)
	if first, known := b.answers[key]; known && digest != first {
		return fmt.Errorf("%s of seed %d: the answer differs from the first one", w.name, seed)
	}
	b.answers[key] = digest
	return f.RemoveAll(out)
}

// follow sets the cluster's delay rule. Jobs have even shares, as in the paper.
func (b *bench) follow(rule string) error {
	return b.cluster.API.Schedule(b.Ctx, wire.Scheduling{Scheduler: "fair", Delay: rule})
}
