package wire

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestPipeBothWays sends from several goroutines at both ends. Messages must arrive whole, and in
// order for each sender.
func TestPipeBothWays(t *testing.T) {
	const senders, each = 4, 50
	a, b := Pipe()
	var all sync.WaitGroup
	for _, end := range []*Conn{a, b} {
		for s := range senders {
			all.Go(func() {
				for i := range each {
					if err := end.Send(&Refuse{Reason: fmt.Sprint(s, " ", i, strings.Repeat(".", i))}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Go(func() {
			var next [senders]int
			for range senders * each {
				m, err := end.Receive()
				if err != nil {
					t.Error(err)
					return
				}
				var s, i int
				if _, err := fmt.Sscanf(m.(*Refuse).Reason, "%d %d", &s, &i); err != nil || next[s] != i {
					t.Errorf("sender %d: got message %d, want %d (%v)", s, i, next[s], err)
				}
				next[s]++
			}
		})
	}
	all.Wait()
}

func TestPipeCloses(t *testing.T) {
	a, b := Pipe()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err := b.Receive(); err != io.EOF {
		t.Errorf("after the other end closed: %v, %v, want io.EOF", m, err)
	}
	if err := b.Send(&CommitReady{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("send to a closed end: %v", err)
	}
	if _, err := a.Receive(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("receive on one's own closed end: %v", err)
	}
}

// TestSendAfterFailure checks that Conn sends no part of a message that it cannot encode.
func TestSendAfterFailure(t *testing.T) {
	a, b := Pipe()
	defer a.Close()
	go func() {
		if err := a.Send(&Refuse{Reason: strings.Repeat("x", MaxFrame)}); !errors.Is(err, ErrFrameTooLarge) {
			t.Errorf("send of a frame too large: %v", err)
		}
		if err := a.Send(&Refuse{Reason: "small"}); err != nil {
			t.Error(err)
		}
	}()
	if m, err := b.Receive(); err != nil || m.(*Refuse).Reason != "small" {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestCountersMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts [3]Counters
		want := map[string]int64{}
		sum := Counters{}
		for i := range parts {
			parts[i] = Counters{}
			for range rapid.IntRange(0, 5).Draw(t, "adds") {
				group, name := rapid.SampledFrom([]string{"G", "H"}).Draw(t, "group"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name")
				n := rapid.Int64Range(-5, 5).Draw(t, "n")
				parts[i].Add(group, name, n)
				want[group+name] += n
			}
			sum.Merge(parts[i])
		}
		for key, n := range want {
			if got := sum.Get(key[:1], key[1:]); got != n {
				t.Fatalf("%s: %d, want %d", key, got, n)
			}
		}
	})
}

func TestInputJobs(t *testing.T) {
	job := JobPlan{Inputs: []InputPlan{{From: 3}, {Paths: []string{"file:///x"}}, {From: 1}, {From: 3}, {From: 2}},
		Results: []SideResult{{"a", 5}, {"b", 1}}}
	if got, want := job.InputJobs(), []int{0, 1, 2, 4}; !reflect.DeepEqual(got, want) {
		t.Errorf("After() = %v, want %v", got, want)
	}
}
