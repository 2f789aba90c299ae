package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// TestGroups compares Groups with a simple count after each record, also within a group.
func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom([]int64{0, 50 * wire.MinHotBytes, 1000 * wire.MinHotBytes}).Draw(t, "of")
		x := NewGroups(of)
		var key []byte
		x.Describe(func() []byte { return key }, func(key []byte) (string, error) {
			if key[0] == 'k' {
				return "text of " + string(key), nil
			}
			return "", errors.New("no text")
		})
		plain, read := []wire.HotGroup(nil), int64(0)
		var last *wire.Hot
		for range rapid.IntRange(0, 20).Draw(t, "groups") {
			name := fmt.Sprint(rapid.SampledFrom([]string{"k", "r"}).Draw(t, "kind"), len(plain))
			for i := range rapid.IntRange(1, 4).Draw(t, "records") {
				size := rapid.SampledFrom([]int{1, 100, wire.MinHotBytes / 2, wire.MinHotBytes, 100 * wire.MinHotBytes}).Draw(t, "size")
				if x.Next(size); i == 0 {
					if len(plain) > 0 {
						x.End(key)
					}
					key = []byte(name)
					plain = append(plain, wire.HotGroup{Key: "text of " + name})
					if name[0] == 'r' {
						plain[len(plain)-1] = wire.HotGroup{Key: name, Raw: true}
					}
				}
				g := &plain[len(plain)-1]
				g.Records, g.Bytes, read = g.Records+1, g.Bytes+int64(size), read+int64(size)
				last = checkHot(t, x.Hot(last), plain, read, of, last)
			}
		}
		if len(plain) > 0 {
			x.Next(0)
			x.End(key)
			key = nil
			checkHot(t, x.Hot(last), plain, read, of, last)
		}
	})
}

// checkHot checks the hot groups: those with most bytes, and of equal ones the first.
func checkHot(t *rapid.T, got *wire.Hot, all []wire.HotGroup, read, of int64, last *wire.Hot) *wire.Hot {
	want := slices.Clone(all)
	slices.SortStableFunc(want, func(a, b wire.HotGroup) int { return int(b.Bytes - a.Bytes) })
	want = slices.DeleteFunc(want, func(g wire.HotGroup) bool { return !wire.IsHot(g.Bytes, max(read, of)) })
	want = want[:min(len(want), wire.MaxHotGroups)]
	switch {
	case got == nil && last == nil && len(want) == 0:
	case got == nil, !slices.Equal(got.Groups, want):
		t.Fatalf("%+v, want %+v", got, want)
	case got == last && !slices.Equal(last.Groups, want), got != last && (got.Read != read || got.Of != max(read, of)):
		t.Fatalf("%+v after %+v, want %d of %d bytes", got, last, read, max(read, of))
	}
	return got
}

// TestHotKeysInProgress: a reduce names the large group within which it is while it runs, and in its result when it
// fails there.
func TestHotKeysInProgress(t *testing.T) {
	plan := linesPlan()
	plan.Reduces, plan.Combine, plan.Properties = 1, false, nil
	b := newTrackerSim(t, plan, wordCount())
	b.jobs[0].Combine = nil
	putFile(b.fs, "mem://t/in/a", []byte(strings.Repeat("rose\n", 30_000)))
	b.mustRun(wire.Setup, 0, nil)
	b.mustRun(wire.Map, 0, nil)
	file := filepath.Join(b.dir, strconv.Itoa(b.attempts), mapOutputName)
	whole := must(shuffle.ReadIndex(file)).Partitions[0]
	named, once := make(chan struct{}), sync.Once{}
	enough := errors.New("enough")
	b.jobs[0].Reduce = func(t *Task, in Records) error {
		var key []byte
		g := in.(interface{ Groups() *Groups }).Groups()
		g.Describe(func() []byte { return key }, func(key []byte) (string, error) { return "<" + string(key) + ">", nil })
		for n := 0; in.Next(); n++ {
			if !bytes.Equal(key, in.Key()) {
				g.End(key)
				key = bytes.Clone(in.Key())
			}
			for n == 29_000 && !t.pulse.requested.Load() { // the next call of Next answers
				<-time.After(time.Millisecond)
			}
			if n > 29_000 {
				select {
				case <-named:
					return enough
				case <-time.After(time.Minute):
					return errors.New("the group was not named while the reduce ran")
				}
			}
		}
		return in.Err()
	}
	r := b.runWatched(wire.Reduce, 0, func(run *wire.Run) {
		run.Runs = []wire.Segment{{Map: 0, Attempt: 1000 + b.attempts, File: file, Offset: whole.Offset, Length: whole.Length}}
	}, func(m *wire.WorkerProgress) {
		if m.Hot != nil {
			once.Do(func() { close(named) })
		}
	})
	if !strings.Contains(r.Error, "enough") || r.Hot == nil || r.Hot.Groups[0].Key != "<rose>" || r.Hot.Groups[0].Records < 28_000 {
		t.Errorf("error %q, hot %+v", r.Error, r.Hot)
	}
}
