package facts

import (
	"fmt"
	"testing"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// TestSettingsTwice checks that a change which is proposed twice does not undo later changes.
func TestSettingsTwice(t *testing.T) {
	f := New()
	index := uint64(0)
	apply := func(x Fact) bool {
		index++
		return f.Apply(index, 1, x)
	}
	apply(&Bootstrapped{Start: 1})
	apply(&Submitted{Submission: wire.Submission{Key: "k", Staging: "mem://s/k", Plan: wire.Plan{Jobs: make([]wire.JobPlan, 1)}}})
	for _, change := range []func(n int) Fact{
		func(n int) Fact { return &SettingsChanged{Key: "k", N: n, Settings: wire.Settings{Weight: float64(n)}} },
		func(n int) Fact {
			return &SchedulingChanged{N: n, Scheduling: wire.Scheduling{Delay: fmt.Sprintf("fixed=%ds", n)}}
		},
		func(n int) Fact { return &PoolsChanged{N: n, Table: pool.Table{From: fmt.Sprint(n)}} },
	} {
		if !apply(change(1)) || !apply(change(2)) || apply(change(1)) || apply(change(2)) || apply(change(4)) {
			t.Errorf("%s: wrong changes fit", change(1).Name())
		}
	}
	if w := f.submissions["k"].settings.Weight; w != 2 || f.scheduling.Scheduling.Delay != "fixed=2s" || f.pools.Table.From != "2" {
		t.Errorf("weight %v, scheduling %+v, pools %+v", w, f.scheduling, f.pools)
	}
	if apply(&SettingsChanged{Key: "other", N: 1}) {
		t.Error("a change of an unknown submission applies")
	}
}
