package mapreduce

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// order puts every job behind those whose results it reads, and else keeps the
// order it was given in.
func (c *compilation) order(jobs []*Job) error {
	writers, err := writersOf(jobs)
	if err != nil {
		return err
	}
	o := &ordering{writers: writers, placed: make(map[*Job]bool)}
	for _, j := range jobs {
		if err := o.place(j); err != nil {
			return err
		}
	}
	c.jobs = o.jobs
	c.settle()
	return nil
}

// writersOf is the job that writes each result. Names of jobs must tell them apart.
func writersOf(jobs []*Job) (map[stage]*Job, error) {
	writers := make(map[stage]*Job)
	names := make(map[string]bool)
	for _, j := range jobs {
		if j == nil || j.stage == nil {
			return nil, errors.New("a job was not made by the Job method of a result")
		}
		if err := checkName("job", j.Name); err != nil {
			return nil, err
		}
		if names[j.Name] {
			return nil, fmt.Errorf("two jobs are named %s", j.Name)
		}
		if other := writers[j.stage]; other != nil {
			return nil, fmt.Errorf("jobs %s and %s are made of one result", other.Name, j.Name)
		}
		names[j.Name], writers[j.stage] = true, j
	}
	return writers, nil
}

// ordering puts jobs in order.
type ordering struct {
	writers map[stage]*Job
	placed  map[*Job]bool
	waiting []string // jobs that are being placed, each reading the next
	jobs    []*Job   // in order
}

// place puts a job behind what it reads, which it places first.
func (o *ordering) place(j *Job) error {
	if o.placed[j] {
		return nil
	}
	o.placed[j] = true
	o.waiting = append(o.waiting, j.Name)
	for _, in := range j.stage.inputs() {
		if in.from == nil {
			continue
		}
		before := o.writers[in.from]
		if before == nil {
			return fmt.Errorf("job %s reads the result of a job that is not in its flow", j.Name)
		}
		// Results are made before what reads them, unless pairs are assigned anew.
		if i := slices.Index(o.waiting, before.Name); i >= 0 {
			return fmt.Errorf("jobs wait for each other: %s", strings.Join(append(o.waiting[i:], before.Name), " reads "))
		}
		if err := o.place(before); err != nil {
			return err
		}
	}
	o.waiting = o.waiting[:len(o.waiting)-1]
	o.jobs = append(o.jobs, j)
	return nil
}

// settle finds out which results are read within the flow, and the formats.
func (c *compilation) settle() {
	c.read = make([]bool, len(c.jobs))
	for _, j := range c.jobs {
		c.stages = append(c.stages, j.stage)
		c.formats = append(c.formats, j.Format)
		for _, in := range j.stage.inputs() {
			if in.from != nil {
				c.read[c.writer(in.from)] = true
			}
		}
	}
	for i := range c.jobs {
		switch {
		case c.formats[i] == nil && c.read[i]:
			c.formats[i] = Binary{}
		case c.formats[i] == nil, c.Text && !c.read[i]:
			c.formats[i] = Text{}
		}
	}
}

// writer is the index of the job that writes a result.
func (c *compilation) writer(result stage) int {
	return slices.IndexFunc(c.jobs, func(j *Job) bool { return j.stage == result })
}
