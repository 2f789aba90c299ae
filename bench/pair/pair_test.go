package pair

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/quernmr/quern/bench/testbed"
)

// TestSignRank compares with published tables, in which ranks begin with 1.
func TestSignRank(t *testing.T) {
	for _, want := range []struct {
		n, rank     int
		probability float64
	}{
		{1, 1, 0}, {2, 1, 0.5}, {5, 1, 0.9375}, {6, 1, 0.96875}, {8, 1, 0.9922}, {9, 2, 0.9609}, {10, 2, 0.9785},
		{15, 4, 0.9648}, {20, 6, 0.9586}, {25, 8, 0.9567}, {40, 14, 0.9615}, {50, 18, 0.9672}, {2000, 956, 0.9534},
	} {
		rank, probability := signRank(want.n)
		if rank+1 != want.rank || math.Abs(probability-want.probability) > 5e-5 {
			t.Errorf("%d values: rank %d has probability %v, want %d, %v", want.n, rank+1, probability, want.rank, want.probability)
		}
	}
}

// TestSignRankCounted compares with a count of all combinations of values below the median.
func TestSignRankCounted(t *testing.T) {
	for n := 1; n <= 16; n++ {
		counted := func(rank int) float64 {
			within := 0
			for below := range uint(1) << n {
				if k := bits.OnesCount(below); k > rank && k < n-rank {
					within++
				}
			}
			return float64(within) / float64(uint(1)<<n)
		}
		rank, probability := signRank(n)
		if math.Abs(counted(rank)-probability) > 1e-12 {
			t.Errorf("%d values: rank %d has probability %v, counted %v", n, rank, probability, counted(rank))
		}
		if next := rank + 1; 2*next < n && counted(next) >= confidence {
			t.Errorf("%d values: rank %d also has enough probability, not only %d", n, next, rank)
		}
		if rank > 0 && probability < confidence {
			t.Errorf("%d values: rank %d has probability %v", n, rank, probability)
		}
	}
}

// TestEstimateRatio: effects on both runs of a pair cancel out.
func TestEstimateRatio(t *testing.T) {
	for name, c := range map[string]struct {
		before, now []float64
		want        estimate
	}{
		"a machine that slows down": {[]float64{1, 2, 4, 8, 16, 32}, []float64{1.5, 3, 6, 12, 24, 48}, estimate{1.5, 1.5, 1.5, 0.96875}},
		"an outlier":                {[]float64{2, 2, 2, 2, 2, 2, 2, 2, 2}, []float64{2, 1, 4, 3, 100, 2, 2, 1, 2}, estimate{1, 0.5, 2, 1 - 20.0/512}},
		"zeros":                     {[]float64{0, 0, 0}, []float64{0, 0, 0}, estimate{1, 1, 1, 0.75}},
		"one pair":                  {[]float64{4}, []float64{5}, estimate{1.25, 1.25, 1.25, 0}},
	} {
		if got := estimateRatio(c.before, c.now); math.Abs(got.probability-c.want.probability) > 1e-12 || got.ratio != c.want.ratio || got.low != c.want.low || got.high != c.want.high {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestConfidence: at least 95 % of the intervals have the true ratio.
func TestConfidence(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const trials, truth = 4000, 1.07
	within := 0
	for range trials {
		before, now := make([]float64, 9), make([]float64, 9)
		for i := range before {
			drift := math.Exp(r.NormFloat64())
			before[i] = drift * (1 + 0.1*r.ExpFloat64())
			now[i] = truth * drift * (1 + 0.1*r.ExpFloat64())
		}
		if e := estimateRatio(before, now); e.low <= truth && truth <= e.high {
			within++
		}
	}
	if share := float64(within) / trials; share < confidence {
		t.Errorf("%.3f of the intervals have the true ratio", share)
	}
}

func TestReadBenchmarks(t *testing.T) {
	got := readBenchmarks(`goos: linux
BenchmarkAssign/spread/trackers=500 	       1	 276000000 ns/op	    361000 core/s	         8.5 p99-µs
BenchmarkStep-2   	  100000	     10542 ns/op
BenchmarkBroken	--- FAIL
PASS
`)
	want := measured{
		"BenchmarkAssign/spread/trackers=500, ns/op": 276000000, "BenchmarkAssign/spread/trackers=500, core/s": 361000,
		"BenchmarkAssign/spread/trackers=500, p99-µs": 8.5, "BenchmarkStep-2, ns/op": 10542,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

// TestRowNames: a benchmark that only one revision has is listed.
func TestRowNames(t *testing.T) {
	all := [][]measured{{{"b": 1, "gone": 1}}, {{"b": 1, "a": 1}}}
	if got := rowNames(all); !reflect.DeepEqual(got, []string{"a", "b", "gone"}) {
		t.Errorf("%v", got)
	}
	if column(all[0], "a") != nil || len(column(all[1], "a")) != 1 {
		t.Error("row a must have one figure, of the second revision")
	}
}

// TestSameOutput: every output must equal the one before.
func TestSameOutput(t *testing.T) {
	dir := t.TempDir()
	same := sameOutput()
	for i, c := range []struct {
		content string
		ok      bool
	}{{"x", true}, {"x", true}, {"y", false}, {"", false}} {
		if err := os.WriteFile(filepath.Join(dir, "part-r-00000"), []byte(c.content), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := same(dir); (err == nil) != c.ok {
			t.Errorf("output %d: %v", i, err)
		}
	}
}

// TestCheckOut: the revision's files exist until the end, and a name that is no commit is
// refused.
func TestCheckOut(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	repository := t.TempDir()
	do := func(args ...string) {
		t.Helper()
		if _, err := git(t.Context(), repository, args...); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(repository, "f")
	do("init", "--quiet")
	for _, content := range []string{"old", "new"} {
		if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		do("add", "f")
		do("-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", content)
	}
	s := testbed.Section{Name: "t", Parts: []testbed.Part{{Name: "p", Measure: func() error { return nil }}}}
	var tree string
	s.Open = func(b *testbed.Bench) (err error) {
		for _, rev := range []string{"nothing", "HEAD:f", "--help"} {
			if _, err := checkOut(b, repository, rev); err == nil || !strings.Contains(err.Error(), "-rev "+rev+" is not a commit") {
				t.Errorf("%s: %v", rev, err)
			}
		}
		if tree, err = checkOut(b, repository, "HEAD~1"); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(tree, "f"))
		if string(text) != "old" {
			t.Errorf("f is %q", text)
		}
		return err
	}
	if err := s.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tree); err == nil {
		t.Errorf("%s is still there", tree)
	}
	if list, err := git(t.Context(), repository, "worktree", "list"); err != nil || strings.Count(list, "\n") != 0 {
		t.Errorf("%s (%v)", list, err)
	}
}
