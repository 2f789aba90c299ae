package delay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

const (
	mega = 1 << 20
	giga = 1 << 30

	// readRate is the rate of a local disk, in bytes per second.
	readRate = 100e6
	// scatter is the log-sigma of reading times, local and remote, and of computing times.
	scatter = 0.2
)

// workload is a set of jobs and a cluster, the same for every policy.
type workload struct {
	nodes, slots int
	block        int64
	replicas     int
	holders      int           // the first nodes, which hold the data; 0: all
	compute      time.Duration // of a block
	remote       time.Duration // extra time of a remote block read
	queries      int
	specs        []spec
	seed         func(name string) *rand.Rand
}

// spec describes a job before it runs.
type spec struct {
	name    string
	query   int
	arrives time.Duration
	bytes   int64
}

// jobs creates the jobs, equal ones each time. Each job draws the nodes of its blocks itself,
// even if queries scan the same table.
func (w *workload) jobs() []*job {
	all := make([]*job, len(w.specs))
	for i, s := range w.specs {
		r := w.seed(fmt.Sprint(s.name, " ", i))
		j := &job{number: i, name: s.name, query: s.query, arrives: s.arrives}
		for left := s.bytes; left > 0; left -= w.block {
			bytes := min(left, w.block)
			share := float64(bytes) / float64(w.block)
			j.tasks = append(j.tasks, &task{
				job:      j,
				number:   len(j.tasks),
				replicas: w.place(r),
				bytes:    bytes,
				local:    noisy(r, float64(bytes)/readRate),
				extra:    noisy(r, share*w.remote.Seconds()),
				compute:  noisy(r, share*w.compute.Seconds()),
			})
		}
		all[i] = j
	}
	return all
}

// place draws distinct nodes for the replicas of a block.
func (w *workload) place(r *rand.Rand) []int {
	holders := w.holders
	if holders == 0 {
		holders = w.nodes
	}
	return r.Perm(holders)[:min(w.replicas, holders)]
}

// noisy draws from the log-normal distribution with that mean.
func noisy(r *rand.Rand, mean float64) time.Duration {
	x := mean * math.Exp(scatter*r.NormFloat64()-scatter*scatter/2)
	return max(time.Microsecond, time.Duration(x*float64(time.Second)))
}

// sorting is the paper's small experiment: a gigabyte a wave on four nodes with four slots
// each, with the data on two of them.
func sorting(waves int, remote time.Duration) *workload {
	return &workload{
		nodes: 4, slots: 4, block: 64 * mega, replicas: 2, holders: 2,
		compute: 5 * time.Second, remote: remote, queries: 1,
		specs: []spec{{name: "sort", bytes: int64(waves) * giga}},
	}
}

// tables has the sizes of TPC-H's tables in bytes. The paper has 110 GB in all and 80 GB for
// the largest. The others have the benchmark's proportions.
var tables = map[string]int64{
	"lineitem": 80e9, "orders": 15.5e9, "partsupp": 10.5e9, "customer": 2e9,
	"part": 2e9, "supplier": 120e6, "nation": 1e6, "region": 1e6,
}

// queries has the tables that each query of TPC-H scans. The paper omits queries 11, 12 and 22,
// which did not end.
var queries = []struct {
	name   string
	tables []string
}{
	{"Q1", []string{"lineitem"}},
	{"Q2", []string{"part", "supplier", "partsupp", "nation", "region"}},
	{"Q3", []string{"customer", "orders", "lineitem"}},
	{"Q4", []string{"orders", "lineitem"}},
	{"Q5", []string{"customer", "orders", "lineitem", "supplier", "nation", "region"}},
	{"Q6", []string{"lineitem"}},
	{"Q7", []string{"supplier", "lineitem", "orders", "customer", "nation"}},
	{"Q8", []string{"part", "supplier", "lineitem", "orders", "customer", "nation", "region"}},
	{"Q9", []string{"part", "supplier", "lineitem", "partsupp", "orders", "nation"}},
	{"Q10", []string{"customer", "orders", "lineitem", "nation"}},
	{"Q13", []string{"customer", "orders"}},
	{"Q14", []string{"lineitem", "part"}},
	{"Q15", []string{"lineitem", "supplier"}},
	{"Q16", []string{"partsupp", "part", "supplier"}},
	{"Q17", []string{"lineitem", "part"}},
	{"Q18", []string{"customer", "orders", "lineitem"}},
	{"Q19", []string{"lineitem", "part"}},
	{"Q20", []string{"supplier", "nation", "partsupp", "part", "lineitem"}},
	{"Q21", []string{"supplier", "lineitem", "orders", "nation"}},
}

// Mean times between arrivals: each query on an empty cluster, or overlapping.
const (
	aloneGap       = time.Hour
	overlappingGap = 50 * time.Second // alone a query takes some 40 s
)

// tpch is the paper's large experiment: the queries on 16 nodes with four slots each.
func tpch(replicas int, overlap bool, remote time.Duration, r *rand.Rand) *workload {
	w := &workload{
		nodes: 16, slots: 4, block: 128 * mega, replicas: replicas,
		compute: 3 * time.Second, remote: remote, queries: len(queries),
	}
	at := time.Duration(0)
	for _, q := range r.Perm(len(queries)) {
		for _, table := range queries[q].tables {
			w.specs = append(w.specs, spec{queries[q].name + " " + table, q, at, tables[table]})
		}
		gap := aloneGap
		if overlap {
			gap = time.Duration(r.ExpFloat64() * float64(overlappingGap))
		}
		at += gap
	}
	return w
}

// busyHost is SPARK-18886: all tasks prefer one of ten hosts and are shorter than the wait.
func busyHost() *workload {
	return &workload{
		nodes: 10, slots: 2, block: 32 * mega, replicas: 1, holders: 1,
		compute: 600 * time.Millisecond, remote: 100 * time.Millisecond, queries: 1,
		specs: []spec{{name: "busy", bytes: 2000 * 32 * mega}},
	}
}
