package core

import (
	"fmt"
	"testing"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// TestWishesTwice: a wish that was proposed twice, as its outcome was not known, undoes
// nothing that was wished after it.
func TestWishesTwice(t *testing.T) {
	f := newFacts(10)
	index := uint64(0)
	apply := func(x fact) bool {
		index++
		return f.apply(index, 1, x)
	}
	apply(&bootstrapped{Start: 1})
	apply(&submitted{Submission: wire.Submission{Key: "k", Staging: "mem://s/k", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 1)}}})
	for _, wish := range []func(n int) fact{
		func(n int) fact { return &changed{Key: "k", N: n, Terms: wire.Terms{Weight: float64(n)}} },
		func(n int) fact {
			return &scheduled{N: n, Scheduling: wire.Scheduling{Delay: fmt.Sprintf("fixed=%ds", n)}}
		},
		func(n int) fact { return &pooled{N: n, Table: pool.Table{From: fmt.Sprint(n)}} },
	} {
		if !apply(wish(1)) || !apply(wish(2)) || apply(wish(1)) || apply(wish(2)) || apply(wish(4)) {
			t.Errorf("%s fits where it should not, or does not", wish(1).key())
		}
	}
	if w := f.submissions["k"].terms.Weight; w != 2 || f.scheduled.Scheduling.Delay != "fixed=2s" || f.pooled.Table.From != "2" {
		t.Errorf("weight %v, scheduling %+v, pools %+v", w, f.scheduled, f.pooled)
	}
	if apply(&changed{Key: "other", N: 1}) {
		t.Error("terms of a submission that is not there are changed")
	}
}
