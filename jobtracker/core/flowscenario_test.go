package core

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// inputJobs lists the numbers, from 1, of the jobs with the input of the job at an index.
func inputJobs(d *datadriven.TestData, i int) (numbers []int) {
	lists := strings.Split(value(d, "reads", ""), "/")
	if len(lists) == 1 {
		if i == 0 {
			return nil
		}
		return []int{i}
	}
	for n := range strings.SplitSeq(lists[i], "+") {
		if from, err := strconv.Atoi(n); err == nil {
			numbers = append(numbers, from)
		}
	}
	return numbers
}

func (s *scenario) policy(c Allocate) scheduler.Policy {
	if !s.automatic {
		return scheduler.FIFO{}
	}
	p, err := menu.Policy(c.Policy)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *scenario) showPlan(k wire.Kind, p scheduler.Plan) {
	if !s.automatic {
		return
	}
	var targets []string
	for _, t := range p.Targets {
		targets = append(targets, fmt.Sprintf("%s=%d ends %.2gs", showJob(t.Job), t.Slots, t.End))
	}
	if text := strings.Join(targets, ", "); text != s.lastPlans[k] {
		s.lastPlans[k] = text
		s.printf("plan %v: %s", k, text)
	}
}

// showGoal returns what a goal adds to the defaults.
func showGoal(g scheduler.Goal) string {
	text := ""
	if g.Weight != 0 && g.Weight != 1 {
		text += fmt.Sprintf(" weight=%v", g.Weight)
	}
	if g.Deadline != 0 {
		text += fmt.Sprintf(" deadline=%v", g.Deadline)
	}
	for _, step := range g.Steps {
		text += fmt.Sprintf(" %v:%v", step.By, step.Cost)
	}
	return text
}
