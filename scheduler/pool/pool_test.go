package pool_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// TestScenarios runs testdata/*.txt. Directives:
//
//	parse [ignore=(ELEMENT,…)]  the table in the given file, or its error
//	standings slots=N [reduce]  the pools of the given jobs, as Table.Standings compares them
//	shape slots=N [reduce]   the given jobs after Table.Apply of the last table, and FAIR's
//	                   slots for them; jobs are one a line as in
//	                   "job1 pool=a max=4 weight=2 priority=1 arrived=2s work=4"
//	shape slots=N by=POLICY  another policy's slots, and the bounds of the jobs' pools
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			var table pool.Table
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				switch d.Cmd {
				case "shape":
					return shape(t, d, &table)
				case "standings":
					return standings(t, d, &table)
				}
				var err error
				var ignore []string
				if a, ok := d.Arg("ignore"); ok {
					ignore = a.Vals
				}
				if table, err = pool.Parse("f.xml", []byte(d.Input), ignore...); err != nil {
					return err.Error()
				}
				return show(&table)
			})
		})
	}
}

func show(table *pool.Table) string {
	var b strings.Builder
	for _, p := range table.Pools {
		fmt.Fprintf(&b, "%s min=%v max=%v weight=%v jobs=%d", p.Name, p.Min, p.Max, p.Weight, p.MaxRunning)
		if p.Submitters != nil {
			fmt.Fprintf(&b, " submitters=%q", p.Submitters)
		}
		if p.SubmitterGroups != nil {
			fmt.Fprintf(&b, " submittergroups=%q", p.SubmitterGroups)
		}
		if p.AdministratorGroups != nil {
			fmt.Fprintf(&b, " administratorgroups=%q", p.AdministratorGroups)
		}
		if p.Administrators != nil {
			fmt.Fprintf(&b, " administrators=%q", p.Administrators)
		}
		if p.Inner {
			b.WriteString(" inner")
		}
		if x := p.Preemption; x != nil {
			fmt.Fprintf(&b, " below min=%v below %v of fair=%v", x.MinTimeout, x.Threshold, x.FairTimeout)
			if x.Spared {
				b.WriteString(" spared")
			}
		}
		b.WriteString("\n")
	}
	for _, u := range table.Users {
		fmt.Fprintf(&b, "user %q jobs=%d\n", u.Name, u.MaxRunning)
	}
	for _, w := range table.Warnings {
		fmt.Fprintln(&b, "warning:", w)
	}
	return b.String()
}

func job(n int) wire.JobID { return wire.JobID{Start: 1, N: n} }

// snapshotOf reads a snapshot and the pools of its jobs.
func snapshotOf(t *testing.T, d *datadriven.TestData) (scheduler.Snapshot, func(wire.JobID) string) {
	s := scheduler.Snapshot{Phase: wire.Map}
	d.ScanArgs(t, "slots", &s.Slots)
	if d.HasArg("reduce") {
		s.Phase = wire.Reduce
	}
	pools := make(map[wire.JobID]string)
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		n, err := strconv.Atoi(strings.TrimPrefix(fields[0], "job"))
		if err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		j := scheduler.Job{ID: job(n), Work: 1, Arrived: time.Duration(n)}
		for _, f := range fields[1:] {
			key, value, _ := strings.Cut(f, "=")
			switch key {
			case "pool":
				pools[j.ID] = value
			case "max":
				j.Max, err = strconv.Atoi(value)
			case "running":
				j.Running, err = strconv.Atoi(value)
			case "work":
				j.Work, err = strconv.ParseFloat(value, 64)
			case "weight":
				j.Goal.Weight, err = strconv.ParseFloat(value, 64)
			case "priority":
				j.Priority, err = strconv.Atoi(value)
			case "arrived":
				j.Arrived, err = time.ParseDuration(value)
			}
			if err != nil {
				d.Fatalf(t, "%q: %v", line, err)
			}
		}
		s.Jobs = append(s.Jobs, j)
	}
	return s, func(id wire.JobID) string { return pools[id] }
}

func standings(t *testing.T, d *datadriven.TestData, table *pool.Table) string {
	var b strings.Builder
	s, poolOf := snapshotOf(t, d)
	for _, x := range table.Standings(&s, poolOf) {
		fmt.Fprintf(&b, "%s running=%d demand=%d min=%d fair=%.4g share=%.4g\n", x.Pool.Name, x.Running, x.Demand, x.Min, x.Fair, x.Share)
	}
	return b.String()
}

func shape(t *testing.T, d *datadriven.TestData, table *pool.Table) string {
	s, poolOf := snapshotOf(t, d)
	by := "fair"
	if d.HasArg("by") {
		d.ScanArgs(t, "by", &by)
	}
	shaped := table.Apply(s, poolOf, menu.NeedsOf(by).Pools)
	policy, err := menu.Policy(by)
	if err != nil {
		return err.Error()
	}
	plan, err := policy.Plan(shaped)
	if err == nil {
		err = plan.Validate(shaped)
	}
	if err != nil {
		return err.Error()
	}
	if by != "fair" {
		return showPlan(&shaped, plan)
	}
	given := make(map[wire.JobID]int)
	for _, target := range plan.Targets {
		given[target.Job] = target.Slots
	}
	var b strings.Builder
	for _, j := range shaped.Jobs {
		fmt.Fprintf(&b, "job%d min=%d max=%d share=%.4g fair=%d\n", j.ID.N, j.Min, j.Max, j.Share, given[j.ID])
	}
	return b.String()
}

// showPlan prints a plan with the bounds of its jobs' pools.
func showPlan(s *scheduler.Snapshot, plan scheduler.Plan) string {
	var b strings.Builder
	for _, target := range plan.Targets {
		fmt.Fprintf(&b, "job%d %d", target.Job.N, target.Slots)
		for _, j := range s.Jobs {
			if j.ID == target.Job && j.Pool > 0 {
				fmt.Fprintf(&b, " of its pool's %d to %d", s.Pools[j.Pool-1].Min, s.Pools[j.Pool-1].Max)
			}
		}
		fmt.Fprintf(&b, ", end %.3g\n", target.End)
	}
	return b.String()
}

// TestAdmits: a pool with a list admits its users alone. A user without a name is on no list.
func TestAdmits(t *testing.T) {
	for _, c := range []struct {
		submitters []string
		owner      string
		want       bool
	}{
		{nil, "", true}, {nil, "ann", true}, {[]string{"ann", "bob"}, "bob", true}, {[]string{"ann"}, "bob", false},
		{[]string{"ann"}, "", false}, {[]string{""}, "", false}, {[]string{""}, "ann", false},
	} {
		p := pool.Pool{Submitters: c.submitters}
		if p.Admits(c.owner, func(string) bool { return false }) != c.want {
			t.Errorf("%q admits %q: %v", c.submitters, c.owner, !c.want)
		}
	}
}

// TestWithoutGroups: a job tracker without groups warns of them once, and they admit no user. Then all
// users may not submit, either.
func TestWithoutGroups(t *testing.T) {
	all, err := pool.Parse("f.xml", []byte(`<allocations><queue name="a"><aclSubmitApps> ops,dev</aclSubmitApps><queue name="b"/></queue>
		<queue name="c"><aclAdministerApps>ann ops</aclAdministerApps></queue></allocations>`))
	if err != nil || !all.HasGroups() {
		t.Fatalf("%+v, %v", all, err)
	}
	none := all.WithoutGroups()
	if len(none.Warnings) != 1 || none.Warnings[0] != "f.xml: groups in lists admit no user (dev, ops): start the job trackers with -groups, or name the users" {
		t.Errorf("warnings %q", none.Warnings)
	}
	in := func(string) bool { return true }
	for _, c := range []struct {
		table                pool.Table
		pool                 string
		submits, administers bool
	}{{all, "a.b", true, false}, {none, "a.b", false, false}, {all, "c", true, true}, {none, "c", true, false}} {
		p, _ := c.table.Find(c.pool)
		if p.Admits("bob", in) != c.submits || p.AdministeredBy("bob", in) != c.administers || p.Admits("", in) != (c.pool == "c") || p.AdministeredBy("", in) {
			t.Errorf("groups %v: pool %+v admits bob: %v", c.table.HasGroups(), p, p.Admits("bob", in))
		}
	}
	if none.HasGroups() || !all.HasGroups() {
		t.Error("WithoutGroups leaves groups, or changes its argument")
	}
}

// TestManyPools: a file has at most 1000 pools.
func TestManyPools(t *testing.T) {
	for n, want := range map[int]string{1000: "", 1001: "more than 1000 pools"} {
		var file strings.Builder
		file.WriteString("<allocations>")
		for i := range n {
			fmt.Fprintf(&file, "<pool name=%q/>", fmt.Sprint("p", i))
		}
		file.WriteString("</allocations>")
		table, err := pool.Parse("f.xml", []byte(file.String()))
		if want == "" && (err != nil || len(table.Pools) != n) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d pools: %d, %v", n, len(table.Pools), err)
		}
	}
}

// TestApply: for random tables and jobs FAIR's plan keeps the pools' bounds and leaves no usable
// slot. Each pool's slots differ from its water level by at most one slot for each job.
func TestApply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		s := scheduler.Snapshot{Phase: rapid.SampledFrom([]wire.Kind{wire.Map, wire.Reduce}).Draw(t, "phase"), Slots: rapid.IntRange(0, 40).Draw(t, "slots")}
		phase := pool.PhaseIndex(s.Phase)
		pools, use, members := make(map[wire.JobID]string), make(map[string]int), make(map[string]int)
		for n := range rapid.IntRange(0, 10).Draw(t, "jobs") {
			j := scheduler.Job{
				ID: job(n + 1), Max: rapid.IntRange(0, 20).Draw(t, "max"), Work: 1,
				Goal: scheduler.Goal{Weight: rapid.SampledFrom([]float64{0, 0.25, 1, 3}).Draw(t, "weight")},
			}
			pools[j.ID] = rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "pool")
			name := pools[j.ID]
			if name == "" {
				name = "default"
			}
			use[name] += j.Max
			members[name]++
			s.Jobs = append(s.Jobs, j)
		}
		before := slices.Clone(s.Jobs)
		shaped := table.Apply(s, func(id wire.JobID) string { return pools[id] }, false)
		if !slices.EqualFunc(before, s.Jobs, func(a, b scheduler.Job) bool { return a.Max == b.Max && a.Share == b.Share }) {
			t.Fatal("the snapshot has changed")
		}
		plan, err := scheduler.Fair{}.Plan(shaped)
		if err == nil {
			err = plan.Validate(s)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, total := make(map[string]int), 0
		for _, target := range plan.Targets {
			name := pools[target.Job]
			if name == "" {
				name = "default"
			}
			got[name] += target.Slots
			total += target.Slots
		}
		usable, minima := 0, 0
		for name := range members {
			p, _ := table.Find(name)
			if p.Max[phase] != pool.Unlimited {
				use[name] = min(use[name], p.Max[phase])
			}
			usable += use[name]
			minima += min(p.Min[phase], use[name])
		}
		if want := min(usable, s.Slots); total != want {
			t.Fatalf("%d slots are given, not %d: %v", total, want, got)
		}
		water := pour(&table, phase, use, s.Slots)
		for name := range members {
			p, _ := table.Find(name)
			if got[name] > use[name] || minima <= s.Slots && got[name] < min(p.Min[phase], use[name]) {
				t.Fatalf("pool %s has %d slots; it can use %d and is guaranteed %d", name, got[name], use[name], p.Min[phase])
			}
			if minima <= s.Slots && math.Abs(float64(got[name])-water[name]) > float64(members[name])+0.1 {
				t.Fatalf("pool %s has %d slots; water gives it %.2f", name, got[name], water[name])
			}
		}
	})
}

// pour gives the slots in small parts, each to the pool with the fewest slots for its weight.
func pour(table *pool.Table, phase int, use map[string]int, slots int) map[string]float64 {
	const part = 1.0 / 64
	held, left := make(map[string]float64), float64(slots)
	for name := range use {
		p, _ := table.Find(name)
		held[name] = float64(min(p.Min[phase], use[name]))
		left -= held[name]
	}
	for ; left > 0; left -= part {
		lowest, level := "", math.Inf(1)
		for name := range use {
			p, _ := table.Find(name)
			weight := p.Weight
			if weight == 0 {
				weight = 1
			}
			if held[name] < float64(use[name]) && (held[name]/weight < level || held[name]/weight == level && name < lowest) {
				lowest, level = name, held[name]/weight
			}
		}
		if lowest == "" {
			break
		}
		held[lowest] += part
	}
	return held
}

func drawTable(t *rapid.T) pool.Table {
	var table pool.Table
	for _, name := range []string{"a", "b", "default"} {
		if !rapid.Bool().Draw(t, name) {
			continue
		}
		p := pool.Pool{Name: name, MaxRunning: pool.Unlimited, Weight: rapid.SampledFrom([]float64{0, 0.5, 1, 4}).Draw(t, "weight")}
		for i := range p.Max {
			p.Min[i] = rapid.IntRange(0, 8).Draw(t, "min")
			p.Max[i] = pool.Unlimited
			if rapid.Bool().Draw(t, "bounded") {
				p.Max[i] = p.Min[i] + rapid.IntRange(0, 12).Draw(t, "more")
			}
		}
		table.Pools = append(table.Pools, p)
	}
	return table
}

// FuzzParse: the result is a table of valid pools or an error that names the file and a line.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/parse.txt")
	if err != nil {
		f.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), "----") {
		if i := strings.Index(part, "<"); i >= 0 {
			f.Add(part[i:])
		}
	}
	f.Fuzz(func(t *testing.T, data string) {
		var table pool.Table
		var err error
		membound.Bound{Free: 1 << 20, PerByte: 512}.Check(t, len(data), func() { table, err = pool.Parse("f.xml", []byte(data)) })
		if err != nil {
			var line int
			if _, scan := fmt.Sscanf(err.Error(), "f.xml:%d:", &line); scan != nil || line < 1 {
				t.Fatalf("%q names no line", err)
			}
			return
		}
		for i, p := range table.Pools {
			if p.Name == "" || i > 0 && table.Pools[i-1].Name >= p.Name || p.Weight < 0 || p.Min[0] < 0 || p.Max[0] != pool.Unlimited && p.Max[0] < p.Min[0] {
				t.Fatalf("%+v", table.Pools)
			}
		}
	})
}
