package schedulers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/schedulers/tasktimes"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// shuffling returns a job in which each map has so many bytes of output.
func shuffling(name string, seed uint64, maps, reduces, bytes int, mean time.Duration, spread float64, args ...string) *job {
	return &job{
		name: name, maps: maps, taskTimes: tasktimes.Job{Seed: seed, Mean: mean, Spread: spread},
		args: append([]string{
			"-D", fmt.Sprintf("mapreduce.job.reduces=%d", reduces), "-D", "mapreduce.task.io.sort.mb=4",
			"-map-bytes", fmt.Sprint(bytes),
		}, args...),
	}
}

// begin submits a job.
func (b *bench) begin(ctx context.Context, c *testbed.Cluster, j *job) (wire.JobID, error) {
	ids, err := b.submit(ctx, c, j, c.NewPath("out"))
	if err != nil {
		return wire.JobID{}, err
	}
	return ids[0], nil
}

// response runs a job and returns its time from submission to end.
func (b *bench) response(ctx context.Context, c *testbed.Cluster, j *job) (float64, error) {
	id, err := b.begin(ctx, c, j)
	if err != nil {
		return 0, err
	}
	last, err := awaitEnds(ctx, c, []wire.JobID{id})
	if err != nil {
		return 0, err
	}
	return last[0].Elapsed.Seconds(), nil
}

// Maps that end less than lastMoment before the last map do not count.
const lastMoment = 500 * time.Millisecond

// keepUp measures the share of map output that homes have fetched when the last map ends. It
// reads the fetches from the trackers' logs.
func (b *bench) keepUp() error {
	c, err := b.Cluster(testbed.Shape{Trackers: 4, Maps: 10, Reduces: 2, TaskTrackerFlags: []string{"-v"}})
	if err != nil {
		return err
	}
	testbed.Table("seed", "maps", "map output", "of maps that ended 500 ms before the last", "fetched when the last ended", "target")
	all, home := 0.0, 0.0
	for _, seed := range b.Seeds(3) {
		k, err := b.keepUpOnce(c, seed)
		if err != nil {
			return err
		}
		all, home = all+k.early, home+k.home
		testbed.Row(fmt.Sprint(seed), fmt.Sprint(k.maps), megabytes(k.all), megabytes(k.early), percent(k.home/k.early), "")
	}
	testbed.Row("all", "", "", megabytes(all), percent(home/all), "≥ 95 %")
	return c.Close()
}

func megabytes(n float64) string { return fmt.Sprintf("%.1f MB", n/1e6) }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// homeShare counts the bytes of all map outputs, of the outputs that count, and of those that
// homes have fetched when the last map ends.
type homeShare struct {
	maps             int
	all, early, home float64
}

func (b *bench) keepUpOnce(c *testbed.Cluster, seed uint64) (k homeShare, err error) {
	const reduces = 8
	j := shuffling("shuffle", seed, 160, reduces, 256<<10, 800*time.Millisecond, 0.5)
	ctx, cancel := context.WithTimeout(b.Ctx, runWait)
	defer cancel()
	id, err := b.begin(ctx, c, j)
	if err != nil {
		return k, err
	}
	if _, err := awaitEnds(ctx, c, []wire.JobID{id}); err != nil {
		return k, err
	}
	ends, last, err := mapEnds(ctx, c, id)
	if err != nil {
		return k, err
	}
	fetches, err := readFetches(c, id)
	if err != nil {
		return k, err
	}
	k.maps = len(ends)
	for _, f := range fetches {
		k.all += f.bytes
		if ends[f.m].Before(last.Add(-lastMoment)) {
			k.early += f.bytes
			if !f.at.After(last) {
				k.home += f.bytes
			}
		}
	}
	if len(fetches) != len(ends)*reduces {
		return k, fmt.Errorf("%v: trackers logged %d partitions of map outputs, want %d times %d", id, len(fetches), len(ends), reduces)
	}
	return k, nil
}

// mapEnds returns the end of each map, and the last end.
func mapEnds(ctx context.Context, c *testbed.Cluster, id wire.JobID) (ends map[int]time.Time, last time.Time, err error) {
	attempts, err := c.API.Attempts(ctx, id)
	if err != nil {
		return nil, last, err
	}
	ends = make(map[int]time.Time)
	for _, a := range attempts.Items {
		attempt, err := wire.ParseAttemptID(a.ID)
		if err != nil {
			return nil, last, err
		}
		if attempt.Task.Kind != wire.Map || a.State != wire.AttemptSucceeded.String() {
			continue
		}
		at := a.Began.Add(time.Duration(a.TookMillis) * time.Millisecond)
		if ends[attempt.Task.N] = at; at.After(last) {
			last = at
		}
	}
	return ends, last, nil
}

// fetch is a home's fetch of its partition of a map output.
type fetch struct {
	at    time.Time
	m     int
	bytes float64
}

// readFetches reads a job's fetches from the logs of task trackers that run with -v.
func readFetches(c *testbed.Cluster, id wire.JobID) (list []fetch, err error) {
	for _, d := range c.All() {
		file, err := os.Open(d.Log())
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			if _, about, ok := strings.Cut(lines.Text(), " msg=gathered "); ok && strings.Contains(about, " job="+id.String()+" ") {
				g, err := parseFetch(lines.Text())
				if err != nil {
					file.Close()
					return nil, fmt.Errorf("%s: %q: %w", d.Log(), lines.Text(), err)
				}
				list = append(list, g)
			}
		}
		err = lines.Err()
		file.Close()
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// parseFetch reads a line such as time=… level=DEBUG msg=gathered tracker=tt1 job=… map=3
// partition=1 bytes=2000.
func parseFetch(line string) (g fetch, err error) {
	for field := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "time":
			g.at, err = time.Parse(time.RFC3339Nano, value)
		case "map":
			_, err = fmt.Sscan(value, &g.m)
		case "bytes":
			_, err = fmt.Sscan(value, &g.bytes)
		}
		if err != nil {
			return g, err
		}
	}
	return g, nil
}

// In the cluster for copy–compute splitting, the large job's shuffle takes much longer than its
// maps, and its reduces need all slots.
const (
	splitRate    = 1 << 20 // bytes a second that a tracker fetches
	splitReduces = 2       // slots of a tracker
)

func largeShuffle(seed uint64, args ...string) *job {
	return shuffling("large", seed, 80, 4*splitReduces, 3<<19, 500*time.Millisecond, 0.3, args...)
}

func smallShuffle(seed uint64, args ...string) *job {
	return shuffling("small", seed, 10, 4, 128<<10, time.Second, 0.3, args...)
}

// splitting measures how much a large job's shuffle delays a small job, with copy–compute
// splitting and without. The small job arrives when the large job's maps have ended.
func (b *bench) splitting() error {
	c, err := b.Cluster(testbed.Shape{
		Trackers: 4, Maps: 10, Reduces: splitReduces, JobTrackerFlags: []string{"-scheduler", "srpt"},
		TaskTrackerFlags: []string{"-shuffle-rate", fmt.Sprint(splitRate)},
	})
	if err != nil {
		return err
	}
	if _, err := b.response(b.Ctx, c, smallShuffle(b.Seed)); err != nil { // the first job of a cluster is slower
		return err
	}
	testbed.Table("a reduce's slot", "small job alone", "during the shuffle of a large one", "ratio", "target")
	for _, way := range []struct {
		name, target string
		args         []string
	}{
		{"is in use while it reduces", "≤ 1.5", nil},
		{"is in use while it fetches, too", "several times that", []string{"-D", "quern.shuffle.split=false"}},
	} {
		alone, loaded := 0.0, 0.0
		for _, seed := range b.Seeds(3) {
			x, y, err := b.splittingOnce(c, seed, way.args)
			if err != nil {
				return err
			}
			alone, loaded = alone+x, loaded+y
		}
		n := float64(len(b.Seeds(3)))
		testbed.Row(way.name, fmt.Sprintf("%.2f s", alone/n), fmt.Sprintf("%.2f s", loaded/n), testbed.Ratio(loaded, alone), way.target)
	}
	return c.Close()
}

func (b *bench) splittingOnce(c *testbed.Cluster, seed uint64, args []string) (alone, loaded float64, err error) {
	ctx, cancel := context.WithTimeout(b.Ctx, runWait)
	defer cancel()
	if alone, err = b.response(ctx, c, smallShuffle(seed, args...)); err != nil {
		return 0, 0, err
	}
	large, err := b.begin(ctx, c, largeShuffle(seed, args...))
	if err != nil {
		return 0, 0, err
	}
	if err := testbed.Await(ctx, testbed.StartWait, "end of the large job's maps", func() bool {
		j, err := c.API.Job(ctx, large)
		return err == nil && j.Maps.Total > 0 && j.Maps.Done == j.Maps.Total
	}); err != nil {
		return 0, 0, err
	}
	if loaded, err = b.response(ctx, c, smallShuffle(seed, args...)); err != nil {
		return 0, 0, err
	}
	after, err := c.API.Job(ctx, large)
	if err != nil {
		return 0, 0, err
	}
	if len(args) == 0 && after.Shuffled.Done == after.Shuffled.Total {
		return 0, 0, fmt.Errorf("the shuffle of %v ended before the small job, and so did not load it all the time", large)
	}
	b.Logf("seed %d: small job %.2f s alone, %.2f s beside the large one, which has shuffled %d of %d bytes",
		seed, alone, loaded, after.Shuffled.Done, after.Shuffled.Total)
	return alone, loaded, kill(ctx, c, large)
}

// kill ends a job that is no longer needed, unless it ends by itself.
func kill(ctx context.Context, c *testbed.Cluster, id wire.JobID) error {
	err := c.API.Kill(ctx, id, "no longer needed")
	if err != nil && !errors.Is(err, admission.ErrJobEnded) && !errors.Is(err, admission.ErrJobCommitting) {
		return err
	}
	return testbed.Await(ctx, testbed.StartWait, "end of "+id.String(), func() bool {
		j, err := c.API.Job(ctx, id)
		return err == nil && (j.State == wire.Killed.String() || j.State == wire.Succeeded.String())
	})
}
