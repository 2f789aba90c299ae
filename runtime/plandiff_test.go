package runtime

import (
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestComparePlans: the error names the first field that differs, with both values. An empty list is
// equal to none.
func TestComparePlans(t *testing.T) {
	plan := func(change func(*wire.JobPlan)) *wire.Plan {
		second := wire.JobPlan{Inputs: []wire.InputPlan{{Paths: []string{"a", "b"}}}, Properties: map[string]string{"p": "1"}}
		if change != nil {
			change(&second)
		}
		return &wire.Plan{Flow: "flow", Jobs: []wire.JobPlan{{Name: "first"}, second}}
	}
	for _, c := range []struct {
		change func(*wire.JobPlan)
		want   string
	}{
		{nil, ""},
		{func(j *wire.JobPlan) { j.Outputs = []string{} }, ""},
		{func(j *wire.JobPlan) { j.Reduces = 3 }, "Jobs[1].Reduces: submitted 0, here 3"},
		{func(j *wire.JobPlan) { j.Inputs[0].Paths[1] = "c" }, `Jobs[1].Inputs[0].Paths[1]: submitted "b", here "c"`},
		{func(j *wire.JobPlan) { j.Inputs[0].Paths = j.Inputs[0].Paths[:1] }, "Jobs[1].Inputs[0].Paths: submitted 2 elements, here 1 elements"},
		{func(j *wire.JobPlan) { j.Properties["p"] = "2" }, `Jobs[1].Properties["p"]: submitted "1", here "2"`},
		{func(j *wire.JobPlan) { j.Properties = nil }, `Jobs[1].Properties["p"]: submitted "1", here absent`},
	} {
		got := ""
		if err := comparePlans(&wire.Submission{Plan: *plan(nil)}, plan(c.change)); err != nil {
			got = err.Error()
		}
		if want := c.want; want == "" && got != "" || want != "" && got != "job is not deterministic: field "+want {
			t.Errorf("got %q, want field %q", got, want)
		}
	}
	step := &wire.Submission{Plan: *plan(nil), Program: wire.Program{Step: &wire.Step{Definition: "rank"}}}
	if err := comparePlans(step, plan(func(j *wire.JobPlan) { j.Reduces = 3 })); err == nil || !strings.Contains(err.Error(), "definition rank depends on more than its parameters") {
		t.Errorf("a step of a driver: %v", err)
	}
	equal := &wire.Submission{Plan: *plan(nil)}
	if n := testing.AllocsPerRun(10, func() { comparePlans(equal, plan(nil)) }); n > 40 {
		t.Errorf("%v allocations for equal plans", n)
	}
}
