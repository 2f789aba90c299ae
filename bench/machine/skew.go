package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
)

// skewReduces is the number of reduces of the jobs with a large key.
const skewReduces = 8

func (b *bench) skewedSort() ([]string, error) {
	return b.skewed("quern.totalorder.divide.keys", func(file string) *exec.Cmd { return b.job("sort", file, "-records") })
}

func (b *bench) skewedJoin() ([]string, error) {
	if err := input.Names(b.Path("names")); err != nil {
		return nil, err
	}
	return b.skewed("quern.join.divide.keys", func(file string) *exec.Cmd { return b.job("joined", file, "-names", b.Path("names")) })
}

// skewed compares a job over records, half of them with one key, with the job over records with random keys. It also
// runs the first one without the property that divides the key.
func (b *bench) skewed(property string, job func(file string) *exec.Cmd) ([]string, error) {
	if err := errors.Join(input.Keyed(b.Path("hot"), b.Bytes, true), input.Keyed(b.Path("balanced"), b.Bytes, false),
		testbed.WarmCache(b.Path("hot")), testbed.WarmCache(b.Path("balanced"))); err != nil {
		return nil, err
	}
	var parts [3]partSizes
	run := func(i int, file, divide string) func() (time.Duration, error) {
		cmd := job(file)
		cmd.Args = append(cmd.Args, "-D", fmt.Sprintf("mapreduce.job.reduces=%d", skewReduces), "-D", property+"="+divide)
		return func() (time.Duration, error) {
			took, err := b.once(cmd)()
			if err == nil {
				parts[i], err = b.partSizes()
			}
			return took, err
		}
	}
	times, err := testbed.Alternate(0, b.Runs, run(0, "hot", "true"), run(1, "balanced", "true"), run(2, "hot", "false"))
	if err != nil {
		return nil, err
	}
	if parts[0].all != parts[2].all {
		return nil, fmt.Errorf("the output has %d bytes with a divided key, %d without", parts[0].all, parts[2].all)
	}
	hot, balanced, whole := testbed.Median(times[0]), testbed.Median(times[1]), testbed.Median(times[2])
	return []string{
		fmt.Sprintf("%s, largest part %s of a mean one", testbed.Speed(b.Bytes, hot), parts[0].ratio()),
		fmt.Sprintf("balanced: %s, %s; key not divided: %s, %s", testbed.Speed(b.Bytes, balanced), parts[1].ratio(), testbed.Speed(b.Bytes, whole), parts[2].ratio()),
		testbed.Ratio(hot, balanced) + " of the balanced time", "≤ 1.4"}, nil
}

// partSizes are the bytes of the part files of the last job.
type partSizes struct{ largest, all int64 }

func (p partSizes) ratio() string {
	return testbed.Ratio(float64(p.largest*skewReduces), float64(p.all))
}

func (b *bench) partSizes() (p partSizes, err error) {
	names, err := filepath.Glob(b.Path("out/part-*"))
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return p, err
		}
		p.largest, p.all = max(p.largest, info.Size()), p.all+info.Size()
	}
	if err == nil && len(names) != skewReduces {
		err = fmt.Errorf("%d part files, want %d", len(names), skewReduces)
	}
	return p, err
}
