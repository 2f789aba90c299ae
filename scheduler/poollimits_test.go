package scheduler_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
	policymenu "github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// drawPools puts jobs into random pools. With minima, pools have a Min, and all fit the slots.
func drawPools(t *rapid.T, s *scheduler.Snapshot, minima bool) {
	left := s.Slots
	for range rapid.IntRange(1, 3).Draw(t, "pools") {
		p := scheduler.Pool{Max: rapid.IntRange(0, 12).Draw(t, "most")}
		if minima {
			p.Min = rapid.IntRange(0, min(left, p.Max)).Draw(t, "least")
			left -= p.Min
		}
		s.Pools = append(s.Pools, p)
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		j.Pool, j.Min, j.Work = rapid.IntRange(0, len(s.Pools)).Draw(t, "pool"), 0, float64(rapid.IntRange(1, 9).Draw(t, "work"))
	}
}

// slotsAndUse sums up by pool the slots in a plan (has) and the slots that jobs can use (use).
// Index 0 is the jobs without a pool.
func slotsAndUse(s scheduler.Snapshot, plan scheduler.Plan) (has, use []int) {
	has, use = make([]int, len(s.Pools)+1), make([]int, len(s.Pools)+1)
	pools := make(map[wire.JobID]int)
	for _, j := range s.Jobs {
		pools[j.ID] = j.Pool
		use[j.Pool] += j.Max
	}
	for _, t := range plan.Targets {
		has[pools[t.Job]] += t.Slots
	}
	return has, use
}

// TestPoolLimited: under any policy pools have at most their Max, and their Min if they can use
// it. All jobs are named, and the plan is a function of its snapshot.
func TestPoolLimited(t *testing.T) {
	for _, name := range policymenu.Names() {
		if !policymenu.NeedsOf(name).Pools {
			continue
		}
		policy, err := policymenu.Policy(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := snapshot(t)
				drawPools(t, &s, true)
				before := clone(s)
				plan, err := policy.Plan(s)
				if err == nil {
					err = plan.Validate(s)
				}
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(s, before) {
					t.Fatalf("the snapshot has changed to %+v", s)
				}
				if again, err := policy.Plan(before); err != nil || !reflect.DeepEqual(plan, again) {
					t.Fatalf("%+v, then %+v, %v", plan, again, err)
				}
				has, use := slotsAndUse(s, plan)
				for k, p := range s.Pools {
					if has[k+1] < min(p.Min, use[k+1]) || has[k+1] > p.Max {
						t.Fatalf("%+v has %d slots and can use %d: %+v", p, has[k+1], use[k+1], plan)
					}
				}
				named := make(map[wire.JobID]bool)
				for _, target := range plan.Targets {
					named[target.Job] = true
				}
				for _, j := range s.Jobs {
					if j.Max > 0 && (j.Pool == 0 || s.Pools[j.Pool-1].Max > 0) && !named[j.ID] {
						t.Fatalf("%v is not named: %+v", j.ID, plan)
					}
				}
			})
		})
	}
}

// TestPoolLimitedFIFO: without minima each job in order gets as many slots as its Max and its
// pool's Max allow.
func TestPoolLimitedFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshot(t)
		drawPools(t, &s, false)
		plan, err := scheduler.PoolLimited{Policy: scheduler.FIFO{Minima: true}}.Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[wire.JobID]int)
		for _, target := range plan.Targets {
			got[target.Job] = target.Slots
		}
		order, err := scheduler.FIFO{}.Plan(s)
		if err != nil {
			t.Fatal(err)
		}
		jobs := make(map[wire.JobID]scheduler.Job)
		for _, j := range s.Jobs {
			jobs[j.ID] = j
		}
		left, room := s.Slots, make([]int, len(s.Pools))
		for k, p := range s.Pools {
			room[k] = p.Max
		}
		for _, target := range order.Targets {
			j := jobs[target.Job]
			want := min(j.Max, left)
			if j.Pool > 0 {
				want = min(want, room[j.Pool-1])
				room[j.Pool-1] -= want
			}
			left -= want
			if got[j.ID] != want {
				t.Fatalf("%v has %d slots, not %d: %+v of %+v", j.ID, got[j.ID], want, plan, s)
			}
		}
	})
}
