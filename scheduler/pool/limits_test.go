package pool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// drawTree draws pools a to c, with pools in some of them.
func drawTree(t *rapid.T) pool.Table {
	limit := func() int { return rapid.SampledFrom([]int{pool.Unlimited, 0, 1, 3, 6}).Draw(t, "limit") }
	var table pool.Table
	for _, name := range []string{"a", "a.x", "a.x.1", "a.x.2", "a.y", "b", "b.x", "c", "root"} {
		inner := slices.Contains([]string{"a", "a.x", "b", "root"}, name)
		if name == "root" && rapid.Bool().Draw(t, "root") {
			continue
		}
		p := pool.Pool{Name: name, Inner: inner, Max: [2]int{limit(), pool.Unlimited}, MaxRunning: limit(), Weight: rapid.SampledFrom([]float64{0, 1, 3}).Draw(t, "weight")}
		table.Pools = append(table.Pools, p)
	}
	for _, user := range []string{"", "ann"} {
		if rapid.Bool().Draw(t, "user") {
			table.Users = append(table.Users, pool.UserLimit{Name: user, MaxRunning: rapid.IntRange(0, 2).Draw(t, "jobs")})
		}
	}
	return table
}

// leaves are pools with jobs. Some jobs were in a.x and b when these had no pools in them.
var leaves = []string{"a.x", "a.x.1", "a.x.2", "a.y", "b", "b.x", "c"}

// within reports whether a pool is another one or in it.
func within(name, outer string) bool {
	return name == outer || outer == pool.Root || strings.HasPrefix(name, outer+".")
}

// TestPartsKeepMaxima lets pools take slots up to their parts, in any order: no pool around them
// exceeds its maximum, or what it had before.
func TestPartsKeepMaxima(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTree(t)
		use := make(map[string]pool.Use)
		for _, name := range leaves {
			n := rapid.IntRange(0, 4).Draw(t, "running")
			use[name] = pool.Use{Running: n, Demand: n + rapid.IntRange(0, 6).Draw(t, "demand")}
		}
		parts := table.Parts(0, use)
		for _, p := range table.Pools {
			had, may, demand := 0, 0, 0
			for _, name := range leaves {
				if !within(name, p.Name) {
					continue
				}
				part, limited := parts[name]
				if !limited {
					part = use[name].Demand
				}
				had, may, demand = had+use[name].Running, may+max(part, use[name].Running), demand+use[name].Demand
			}
			if limit := p.Max[0]; p.Inner && limit != pool.Unlimited && may > max(limit, had) {
				t.Fatalf("%s: its pools may have %d slots, and it at most %d; they had %d", p.Name, may, limit, had)
			}
			free := true // no pool around it has a maximum
			for outer := table.Around(p.Name); outer != ""; outer = table.Around(outer) {
				q, _ := table.Find(outer)
				free = free && q.Max[0] == pool.Unlimited
			}
			own := slices.ContainsFunc(table.Pools, func(q pool.Pool) bool {
				return q.Name != p.Name && within(q.Name, p.Name) && q.Max[0] != pool.Unlimited
			})
			if limit := p.Max[0]; p.Inner && limit != pool.Unlimited && free && !own && may < min(limit, demand) {
				t.Fatalf("%s: its pools may have %d slots of %d, and could use %d", p.Name, may, limit, demand)
			}
		}
	})
}

// TestHoldLikeSimple admits one job after the other, counting from scratch each time.
func TestHoldLikeSimple(t *testing.T) {
	type job struct {
		Pool, User string
		Runs       bool
		Priority   wire.Priority
	}
	rapid.Check(t, func(t *rapid.T) {
		table := drawTree(t)
		jobs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) job {
			return job{
				Pool: rapid.SampledFrom(leaves).Draw(t, "pool"), User: rapid.SampledFrom([]string{"", "ann", "bob"}).Draw(t, "user"),
				Runs: rapid.IntRange(0, 3).Draw(t, "runs") == 0, Priority: wire.Priority(rapid.IntRange(-1, 1).Draw(t, "priority")),
			}
		}), 0, 12).Draw(t, "jobs")
		holder := table.NewHolder()
		var candidates []pool.Candidate
		for _, j := range jobs {
			candidates = append(candidates, pool.Candidate{Limits: holder.Limits(j.User, j.Pool), Runs: j.Runs, Priority: j.Priority})
		}
		holder.Hold(candidates)
		got := holder.Hold(candidates)
		running := make([]bool, len(jobs))
		for i, j := range jobs {
			running[i] = j.Runs
		}
		exceeds := func(i int) bool {
			for _, p := range table.Pools {
				n := 0
				for k := range jobs {
					if running[k] && within(jobs[k].Pool, p.Name) {
						n++
					}
				}
				if p.MaxRunning != pool.Unlimited && within(jobs[i].Pool, p.Name) && n >= p.MaxRunning {
					return true
				}
			}
			n := 0
			for k := range jobs {
				if running[k] && jobs[k].User == jobs[i].User {
					n++
				}
			}
			limit := table.MaxRunningOf(jobs[i].User)
			return limit != pool.Unlimited && n >= limit
		}
		for priority := wire.Priority(1); priority >= -1; priority-- {
			for i, j := range jobs {
				if j.Priority != priority || j.Runs {
					continue
				}
				if held := exceeds(i); held != (got[i] != "") {
					t.Fatalf("job %d of %+v is held: %v; %q", i, jobs, held, got)
				} else {
					running[i] = !held
				}
			}
		}
	})
}

func ExampleHolder_Hold() {
	table, _ := pool.Parse("f.xml", []byte(`<allocations><user name="ann"><maxRunningApps>1</maxRunningApps></user></allocations>`))
	h := table.NewHolder()
	ann, bob := h.Limits("ann", "default"), h.Limits("bob", "default")
	fmt.Printf("%q\n", h.Hold([]pool.Candidate{{Limits: ann}, {Limits: bob}, {Limits: ann, Priority: wire.High}}))
	// Output: ["user ann runs as many jobs as it may" "" ""]
}

// TestPartsOfLeftPools tests that the jobs of a pool that has left the table, or has become an inner one,
// count for the maximum around them.
func TestPartsOfLeftPools(t *testing.T) {
	table, err := pool.Parse("f.xml", []byte(`<allocations><queue name="a"><maxResources>6 vcores</maxResources>
		<queue name="x"/><queue name="y"><queue name="z"/></queue></queue></allocations>`))
	if err != nil {
		t.Fatal(err)
	}
	parts := table.Parts(0, map[string]pool.Use{"a.x": {Demand: 9}, "a.gone": {Demand: 9}, "a.y": {Running: 1, Demand: 9}, "a.y.z": {Demand: 9}})
	if got := parts["a.x"] + parts["a.gone"] + parts["a.y"] + parts["a.y.z"]; got != 6 || parts["a.x"] != 2 || parts["a.gone"] != 2 || parts["a.y"] == 0 {
		t.Errorf("parts: %v", parts)
	}
}

// TestPartsWithinMaxima tests that a pool with more slots than its own maximum gets no larger part than that:
// else it would take slots again when it has one less.
func TestPartsWithinMaxima(t *testing.T) {
	table, err := pool.Parse("f.xml", []byte(`<allocations><queue name="a"><maxResources>9 vcores</maxResources>
		<queue name="x"><maxResources>2 vcores</maxResources></queue><queue name="y"><maxResources>2 vcores</maxResources><queue name="z"/></queue></queue></allocations>`))
	if err != nil {
		t.Fatal(err)
	}
	parts := table.Parts(0, map[string]pool.Use{"a.x": {Running: 3, Demand: 9}, "a.y.z": {Running: 3, Demand: 9}})
	if parts["a.x"] != 2 || parts["a.y.z"] != 2 {
		t.Errorf("parts: %v", parts)
	}
}

// TestRootLimitsDefault: the default pool has a part of root's maximum, though the file does not name it.
func TestRootLimitsDefault(t *testing.T) {
	table, err := pool.Parse("f.xml", []byte(`<allocations><queue name="root"><maxResources>6 vcores</maxResources><queue name="a"/></queue></allocations>`))
	if err != nil {
		t.Fatal(err)
	}
	parts := table.Parts(0, map[string]pool.Use{"a": {Demand: 9}, "default": {Demand: 9}})
	if parts["a"] != 3 || parts["default"] != 3 {
		t.Errorf("parts: %v", parts)
	}
}

// TestNeedsPart tests which pools get a part as soon as jobs come to them: those for which Parts has one only
// if they have jobs, in a pool with a maximum.
func TestNeedsPart(t *testing.T) {
	limited := [2]int{4, pool.Unlimited}
	none := [2]int{pool.Unlimited, pool.Unlimited}
	table := pool.Table{Pools: []pool.Pool{
		{Name: "a", Inner: true, Max: limited}, {Name: "a.b", Inner: true, Max: none}, {Name: "a.b.c", Max: none}, {Name: "d", Inner: true, Max: none}, {Name: "d.e", Max: limited},
	}}
	for name, want := range map[string]bool{
		"a": true, "a.b": true, "a.b.c": false, "a.b.gone": true, "a.gone": true, "d": false, "d.e": false, "d.gone": false, "gone": false, "default": false,
	} {
		_, jobless := table.Parts(0, nil)[name]
		_, part := table.Parts(0, map[string]pool.Use{name: {Demand: 1}})[name]
		if got := table.NeedsPart(name); got != want || got != (part && !jobless) {
			t.Errorf("%s: %v, want %v; it has a part with jobs: %v, without: %v", name, got, want, part, jobless)
		}
	}
	if table.Pools = nil; table.NeedsPart("a.gone") {
		t.Error("a pool needs a part of the maxima of an empty table")
	}
}
