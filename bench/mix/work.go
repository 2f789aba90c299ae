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

// workload is a query, a sort or a grep.
type workload struct {
	name    string
	query   bool
	program string
	answer  string // directory of its answer below the output
	args    func(in string) []string
}

// reduces sets one reduce per tracker for a query's jobs. The sort has only one: with several it
// would first sample much of its input outside map slots.
var reduces = fmt.Sprintf("mapreduce.job.reduces=%d", nodes)

// workloads lists the six queries, a sort and a grep.
func workloads() []workload {
	var all []workload
	for _, n := range peers.Queries() {
		w := workload{name: fmt.Sprintf("query %d", n), query: true, program: "tpch", answer: "answer"}
		w.args = func(in string) []string { return []string{"-query", fmt.Sprint(n), "-tables", in, "-D", reduces} }
		if n == 6 {
			w.answer = "" // a flow of one job
		}
		all = append(all, w)
	}
	return append(all,
		workload{name: "sort", program: "sort", args: func(in string) []string { return []string{"-input", in + "/lines"} }},
		workload{name: "grep", program: "grep", args: func(in string) []string { return []string{"-e", input.Needle, "-input", in + "/text"} }})
}

// run runs a workload on a seed's input and returns the time of its command.
func (b *bench) run(w workload, seed uint64, out string) (time.Duration, error) {
	return b.cluster.Run(b.Ctx, append([]string{b.cluster.Program(w.program), "-output", out}, w.args(b.in(seed))...)...)
}

// output returns a new output directory.
func (b *bench) output() string {
	b.outputs++
	return fmt.Sprintf("%s/out/%d", b.hdfs.URL(), b.outputs)
}

// checkAnswer compares an answer with the workload's first one, and removes it. It turns the
// slow reads off, because no measurement runs meanwhile.
func (b *bench) checkAnswer(w workload, seed uint64, out string) error {
	b.slowReads.Set(block, 0, 0)
	defer b.slowReads.Set(block, localRead, remoteRead)
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

// setRule sets the cluster's delay rule, with the scheduler fair as in the paper.
func (b *bench) setRule(rule string) error {
	return b.cluster.API.Schedule(b.Ctx, wire.Scheduling{Scheduler: "fair", Delay: rule})
}
