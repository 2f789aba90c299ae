package mapreduce

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
	"pgregory.net/rapid"
)

// joinHost has a directory for temporary files.
type joinHost struct {
	nullHost
	dir string
}

func (h *joinHost) Dir() string { return h.dir }

// runJoinEach joins two sides, given as records, with a buffer of so many bytes.
func runJoinEach(kind JoinKind, in mrruntime.Records, dir string, buffer int, f func(key int64, a *string, b *string) error) error {
	none := func(*Task, string, func(int64, string)) error { return nil }
	r := JoinEach(Map(Lines(), none), Map(Lines(), none), kind, func(_ *Task, key int64, a, b *string, _ func(int64, int64)) error { return f(key, a, b) })
	spec := &jobSpec{format: Text{}, host: func(t *mrruntime.Task) host { return &joinHost{nullHost{Task: t}, dir} }}
	task := nullTask()
	task.Plan = &wire.JobPlan{Properties: map[string]string{property.JoinBuffer: strconv.Itoa(buffer)}}
	return r.stage.reduce(spec)(task, in)
}

func joinKey(key int64, side byte) []byte { return joinShape[int64](nil, side).key().append(nil, key) }

// pairText describes a pair.
func pairText(key int64, a, b *string) string {
	text := func(s *string) string {
		if s == nil {
			return "-"
		}
		return strconv.Quote(*s)
	}
	return fmt.Sprintf("%d %s %s", key, text(a), text(b))
}

// allPairs is the simple join: it has all values in memory.
func allPairs(kind JoinKind, lefts, rights map[int64][]string) (all []string) {
	for key := range int64(4) {
		for _, a := range lefts[key] {
			for _, b := range rights[key] {
				all = append(all, pairText(key, &a, &b))
			}
			if len(rights[key]) == 0 && (kind == LeftJoin || kind == FullJoin) {
				all = append(all, pairText(key, &a, nil))
			}
		}
		if len(lefts[key]) == 0 && (kind == RightJoin || kind == FullJoin) {
			for _, b := range rights[key] {
				all = append(all, pairText(key, nil, &b))
			}
		}
	}
	slices.Sort(all)
	return all
}

// joinRecords returns the sorted records of a join.
func joinRecords(lefts, rights map[int64][]string) (records []record) {
	for side, of := range map[byte]map[int64][]string{leftSide: lefts, rightSide: rights} {
		for key, all := range of {
			for _, v := range all {
				records = append(records, record{key: joinKey(key, side), value: stringCodec.append(nil, v)})
			}
		}
	}
	slices.SortStableFunc(records, func(a, b record) int { return bytes.Compare(a.key, b.key) })
	return records
}

// TestJoinEach compares with the simple join, for all kinds and with buffers that are too small for most keys. The
// job's code changes the values that it gets.
func TestJoinEach(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		kind := rapid.SampledFrom([]JoinKind{InnerJoin, LeftJoin, RightJoin, FullJoin}).Draw(r, "kind")
		values := rapid.MapOf(rapid.Int64Range(0, 3), rapid.SliceOfN(rapid.StringN(0, 9, -1), 0, 12))
		lefts, rights := values.Draw(r, "lefts"), values.Draw(r, "rights")
		var got []string
		err := runJoinEach(kind, &fakeRecords{all: joinRecords(lefts, rights)}, dir, rapid.IntRange(1, 60).Draw(r, "buffer"), func(key int64, a, b *string) error {
			got = append(got, pairText(key, a, b))
			for _, changed := range []*string{a, b} {
				if changed != nil {
					*changed = "changed"
				}
			}
			return nil
		})
		if err != nil {
			r.Fatal(err)
		}
		if slices.Sort(got); !slices.Equal(got, allPairs(kind, lefts, rights)) {
			r.Fatalf("joined %q, expected %q", got, allPairs(kind, lefts, rights))
		}
	})
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestJoinEachReadError: after an error, no value is returned without a partner that has not been read.
func TestJoinEachReadError(t *testing.T) {
	lefts, rights := map[int64][]string{0: {"a", "b"}, 1: {"c"}}, map[int64][]string{0: {"d"}, 1: {"e", "f"}}
	records := joinRecords(lefts, rights)
	for _, kind := range []JoinKind{InnerJoin, LeftJoin, RightJoin, FullJoin} {
		for after := 1; after < len(records); after++ {
			dir, all := t.TempDir(), allPairs(kind, lefts, rights)
			err := runJoinEach(kind, &fakeRecords{all: records, failAfter: after}, dir, 1, func(key int64, a, b *string) error {
				if pair := pairText(key, a, b); !slices.Contains(all, pair) {
					t.Errorf("kind %d, error after %d records: joined %s", kind, after, pair)
				}
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), "broken segment") {
				t.Errorf("kind %d, error after %d records: %v", kind, after, err)
			}
			if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
				t.Errorf("kind %d, error after %d records: left %v, %v", kind, after, left, err)
			}
		}
	}
}

// TestJoinEachFails: after an error or a panic of the job's code in a key that was spilled, its file is removed.
func TestJoinEachFails(t *testing.T) {
	records := joinRecords(map[int64][]string{0: {"a", "b"}}, map[int64][]string{0: {"c"}})
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("odd") },
		"panic": func() error { panic("odd") },
	} {
		dir, during := t.TempDir(), 0
		func() {
			defer func() { recover() }()
			runJoinEach(InnerJoin, &fakeRecords{all: records}, dir, 1, func(int64, *string, *string) error {
				files, _ := os.ReadDir(dir)
				during = len(files)
				return fail()
			})
		}()
		if left, err := os.ReadDir(dir); during != 1 || len(left) > 0 || err != nil {
			t.Errorf("%s: %d files during the join, left %v, %v", name, during, left, err)
		}
	}
}

// TestJoinSpillDamaged: a damaged file fails the join, before a size in it takes memory.
func TestJoinSpillDamaged(t *testing.T) {
	records := joinRecords(map[int64][]string{0: {"a", "b"}}, map[int64][]string{0: {"c", "d"}})
	for damage, want := range map[string]string{"\xff\xff\xff\xff\xff\xff\xff\xff\x7f": errInvalid.Error(), "\x02a": "unexpected EOF"} {
		dir := t.TempDir()
		err := runJoinEach(InnerJoin, &fakeRecords{all: records}, dir, 1, func(int64, *string, *string) error {
			files, err := os.ReadDir(dir)
			if err != nil {
				return err
			}
			return os.WriteFile(dir+"/"+files[0].Name(), []byte(damage), 0o600)
		})
		if err == nil || !strings.Contains(err.Error(), "read the spilled left values of a join from "+dir) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", damage, err, want)
		}
	}
}

// oneKey is n left records of a key, then n right ones.
type oneKey struct {
	n, at       int
	left, right []byte
	value       []byte
}

func (r *oneKey) Next() bool {
	if r.at++; r.at > 2*r.n {
		return false
	}
	r.value = append(r.value[:0], "a value of forty bytes, or about so many"...)
	return true
}

func (r *oneKey) Key() []byte {
	if r.at <= r.n {
		return r.left
	}
	return r.right
}

func (r *oneKey) Value() []byte { return r.value }
func (r *oneKey) Err() error    { return nil }

// TestJoinEachMemory: the memory for a key with a million values on both sides does not depend on their number. The
// strings of the pairs are garbage, so the join stops after some. Each side has 40 MB.
func TestJoinEachMemory(t *testing.T) {
	dir := t.TempDir()
	enough := errors.New("enough pairs")
	membound.Bound{Free: 16 << 20}.Check(t, 0, func() {
		in, pairs := &oneKey{n: 1_000_000, left: joinKey(1, leftSide), right: joinKey(1, rightSide)}, 0
		err := runJoinEach(InnerJoin, in, dir, 1<<20, func(int64, *string, *string) error {
			if pairs++; pairs == 50_000 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Error(cmp.Or(err, errors.New("no error")))
		}
	})
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
}
