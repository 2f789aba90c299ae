package pair

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/quernmr/quern/bench/testbed"
)

// warmCluster is the cluster of a revision, and the use of processors by its jobs.
type warmCluster struct {
	*testbed.Cluster
	programs string
	used     time.Duration // by mrsubmit and its children
	daemons  float64       // seconds by daemons and tasks before the first measured job
}

// warm compares a small job on two clusters. Each is idle while the other works. Each job is timed from mrsubmit's start
// to _SUCCESS. Processor time is that of all processes for all jobs, because the system counts it in ticks of 10 ms.
func (b *bench) warm(tls bool) func() error {
	return func() error {
		const warmUp = 1
		same := sameOutput()
		var clusters [2]*warmCluster
		var runs [2]func() (time.Duration, error)
		for k, r := range b.revisions {
			c, err := b.Cluster(testbed.Shape{Programs: r.programs, JobTrackers: 3, Trackers: 3, Maps: 2, Reduces: 2, TLS: tls})
			if err != nil {
				return err
			}
			defer c.Close()
			clusters[k] = &warmCluster{Cluster: c, programs: r.programs}
			done := 0
			runs[k] = func() (time.Duration, error) {
				if done == warmUp {
					clusters[k].begin()
				}
				done++
				out := c.NewPath("out")
				took, err := clusters[k].count(b, out)
				if err != nil {
					return 0, err
				}
				return took, same(out)
			}
		}
		times, err := testbed.Alternate(warmUp, shortJobRuns*b.Runs, runs[0], runs[1])
		if err != nil {
			return err
		}
		name := "word count of 1 KB on a warm cluster, start to _SUCCESS"
		if tls {
			name += ", TLS"
		}
		printWarm(name, times, [2]float64{clusters[0].processor(), clusters[1].processor()})
		return nil
	}
}

// begin begins to count processor time.
func (c *warmCluster) begin() {
	tasks, daemons := c.Processor()
	c.used, c.daemons = 0, tasks+daemons
}

// processor returns the processor seconds since begin.
func (c *warmCluster) processor() float64 {
	tasks, daemons := c.Processor()
	return c.used.Seconds() + tasks + daemons - c.daemons
}

// count runs a job, and returns the time until its _SUCCESS is there.
func (c *warmCluster) count(b *bench, out string) (time.Duration, error) {
	cmd := c.Command(b.Ctx, "mrsubmit", "run", c.Program("wordcount"), "-input", b.Path("small"), "-output", out)
	return untilSuccess(b, cmd, out, &c.used)
}

func untilSuccess(b *bench, cmd *exec.Cmd, out string, used *time.Duration) (time.Duration, error) {
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	awaited := testbed.Await(b.Ctx, testbed.StartWait, "_SUCCESS", func() bool {
		_, err := os.Stat(filepath.Join(out, "_SUCCESS"))
		return err == nil
	})
	took := time.Since(began)
	if err := cmd.Wait(); err != nil {
		return 0, fmt.Errorf("%v: %w", cmd, err)
	}
	*used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return took, awaited
}

// printWarm prints the rows of the times and of the processor time per job.
func printWarm(name string, times [][]time.Duration, processor [2]float64) {
	var ms [2][]float64
	var p99 [2]float64
	for k := range ms {
		for _, t := range times[k] {
			ms[k] = append(ms[k], t.Seconds()*1000)
		}
		sorted := slices.Sorted(slices.Values(ms[k]))
		p99[k] = sorted[(len(sorted)*99-1)/100]
	}
	printRow(name+", ms", ms[0], ms[1])
	printPair(name+", p99, ms", p99)
	jobs := float64(len(times[0]))
	printPair(name+", ms of processors a job", [2]float64{processor[0] * 1000 / jobs, processor[1] * 1000 / jobs})
}

// printPair prints a row of one pair of figures.
func printPair(name string, figures [2]float64) {
	testbed.Row(name, fmt.Sprintf("%.4g", figures[0]), fmt.Sprintf("%.4g", figures[1]), fmt.Sprintf("%.3f", figures[1]/figures[0]), "–", "")
}
