package mapreduce

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// order sorts the jobs: each comes after the jobs that it reads. Otherwise it keeps the
// given order.
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
	c.chooseFormats()
	return nil
}

// writersOf returns the job that writes each result, and checks that names are unique.
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
			return nil, fmt.Errorf("jobs %s and %s write the same result", other.Name, j.Name)
		}
		names[j.Name], writers[j.stage] = true, j
	}
	return writers, nil
}

// ordering is a topological sort of jobs.
type ordering struct {
	writers map[stage]*Job
	placed  map[*Job]bool
	chain   []string // jobs that are being placed; each reads the next
	jobs    []*Job   // in order
}

// place appends a job after the jobs that it reads.
func (o *ordering) place(j *Job) error {
	if o.placed[j] {
		return nil
	}
	o.placed[j] = true
	o.chain = append(o.chain, j.Name)
	for result := range readBy(j.stage) {
		writer := o.writers[result]
		if writer == nil {
			return fmt.Errorf("job %s reads the result of a job that is not in its flow", j.Name)
		}
		// Cycles are possible only if the author assigns to a *Pairs after its first use.
		if i := slices.Index(o.chain, writer.Name); i >= 0 {
			return fmt.Errorf("jobs wait for each other: %s", strings.Join(append(o.chain[i:], writer.Name), " reads "))
		}
		if err := o.place(writer); err != nil {
			return err
		}
	}
	o.chain = o.chain[:len(o.chain)-1]
	o.jobs = append(o.jobs, j)
	return nil
}

// readBy yields the results of other jobs that a stage reads, in its inputs and in small sides.
func readBy(st stage) iter.Seq[stage] {
	return func(yield func(stage) bool) {
		inputs := st.inputs()
		for _, b := range st.smallSides() {
			inputs = append(inputs, b.inputs...)
		}
		for _, in := range inputs {
			if in.from != nil && !yield(in.from) {
				return
			}
		}
	}
}

// chooseFormats finds the results that other jobs read, and sets default formats.
func (c *compilation) chooseFormats() {
	c.isRead = make([]bool, len(c.jobs))
	for _, j := range c.jobs {
		c.stages = append(c.stages, j.stage)
		c.formats = append(c.formats, j.Format)
		for result := range readBy(j.stage) {
			c.isRead[c.writerOf(result)] = true
		}
	}
	for i := range c.jobs {
		switch {
		case c.formats[i] == nil && (c.isRead[i] || c.Step && c.jobs[i].Output == ""):
			c.formats[i] = Binary{}
		case c.formats[i] == nil, c.Text && !c.isRead[i]:
			c.formats[i] = Text{}
		}
	}
}

// writerOf returns the index of the job that writes a result.
func (c *compilation) writerOf(result stage) int {
	return slices.IndexFunc(c.jobs, func(j *Job) bool { return j.stage == result })
}
