package mapreduce_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

func number(n int) iter.Seq[int] { return slices.Values([]int{n}) }

func squares(maps int) (*mapreduce.Job, error) {
	return mapreduce.MapOnly(mapreduce.Map(mapreduce.Generate(maps, number), func(t *mapreduce.Task, n int, emit func(int, int)) error {
		if len(t.Splits()) > 0 {
			return fmt.Errorf("map %d has files: %v", n, t.Splits())
		}
		emit(n, n*n)
		return nil
	})).Job("squares"), nil
}

// TestGenerate: each map gets its number and writes its own file, without any input.
func TestGenerate(t *testing.T) {
	out := mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Job, error) { return squares(12) }), nil)
	if len(out.Files) != 12 {
		t.Errorf("%d files", len(out.Files))
	}
	for n := range 12 {
		if name, want := fmt.Sprintf("part-m-%05d", n), fmt.Sprintf("%d\t%d\n", n, n*n); out.Files[name] != want {
			t.Errorf("%s has %q, want %q", name, out.Files[name], want)
		}
	}
}

// TestGenerateSample: setup, which looks for ranges of keys, reads only the first records of a map.
func TestGenerateSample(t *testing.T) {
	const records = 30_000
	made := 0 // in all runs of the map, one after the other
	mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Job, error) {
		numbers := mapreduce.Generate(1, func(int) iter.Seq[int] {
			return func(yield func(int) bool) {
				for i := 0; i < records && yield(i); i++ {
					made++
				}
			}
		})
		job := mapreduce.Sort(mapreduce.Map(numbers, func(_ *mapreduce.Task, n int, emit func(int, struct{})) error {
			emit(n, struct{}{})
			return nil
		}).TotalOrder()).Job("numbers")
		job.FixedReduces = 2
		return job, nil
	}), nil)
	if samples := made % records; samples == 0 || samples%10_000 != 0 {
		t.Errorf("%d records were made: want a multiple of %d, and 10,000 for each sample", made, records)
	}
}

// TestGenerateTotalOrder: setup finds ranges of generated keys; a generated input can stand beside one of files.
func TestGenerateTotalOrder(t *testing.T) {
	out := mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Job, error) {
		generated := mapreduce.Map(mapreduce.Generate(3, number), func(_ *mapreduce.Task, n int, emit func(string, struct{})) error {
			emit(strings.Repeat("b", n+1), struct{}{})
			return nil
		})
		lines := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, struct{})) error {
			emit(line, struct{}{})
			return nil
		})
		job := mapreduce.Sort(mapreduce.Merge(generated, lines).TotalOrder()).Job("ordered")
		job.Reduces = 2
		return job, nil
	}), map[string]string{"in": "a\nc\nd\n"})
	if got, want := out.Text(), "a\nb\nbb\nbbb\nc\nd\n"; got != want || len(out.Files) != 2 || out.Files["part-r-00000"] == "" {
		t.Errorf("got %q, want %q in two files", out.Files, want)
	}
}

// TestGenerateRefused: a job without maps is refused when it is built.
func TestGenerateRefused(t *testing.T) {
	for _, maps := range []int{0, -3} {
		job, err := squares(maps)
		if err == nil {
			_, err = job.Compile(bridge.Settings{Output: "mem://out"})
		}
		if want := fmt.Sprintf("Generate was called with %d maps: want 1 or more", maps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
