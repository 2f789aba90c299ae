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

// work is something to be computed.
type work struct {
	name    string
	query   bool
	program string
	answer  string // the directory of it below the output
	args    func(in string) []string
}

// reduces of a query's jobs: a slot of each tracker. The sort has one: to divide the
// keys among several it would first read much of its input where there is no slot to wait for.
var reduces = fmt.Sprintf("mapreduce.job.reduces=%d", nodes)

// works are the six queries, a sort and a grep.
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

// once computes a work of a seed's input, and gives the time of the command that did it.
func (b *bench) once(w work, seed uint64, out string) (time.Duration, error) {
	return b.cluster.Run(b.Ctx, append([]string{b.cluster.Program(w.program), "-output", out}, w.args(b.in(seed))...)...)
}

// output is a new place for an output.
func (b *bench) output() string {
	b.made++
	return fmt.Sprintf("%s/out/%d", b.hdfs.URL(), b.made)
}

// check compares an answer with the one that the work had first, and removes it. While
// nothing is measured, reading takes no longer than it does.
func (b *bench) check(w work, seed uint64, out string) error {
	b.slow.Set(block, 0, 0)
	defer b.slow.Set(block, fromOwn, fromFar)
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
		return fmt.Errorf("%s of seed %d: its answer is another than the first time", w.name, seed)
	}
	b.answers[key] = digest
	return f.RemoveAll(out)
}

// follow has the cluster follow a rule. Jobs have even shares, as in the paper.
func (b *bench) follow(rule string) error {
	return b.cluster.API.Schedule(b.Ctx, wire.Scheduling{Scheduler: "fair", Delay: rule})
}
