package waits

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Flow is jobs in an order in which they can run.
type Flow []Node

// Node is a job of a flow.
type Node struct {
	Job
	Tasks int   // maps
	After []int // positions of the jobs whose output it reads, each with one of its maps
}

// String is the flow as an argument of the program: a job's tasks, mean, spread, seed
// and what it is after, as in 8,450ms,0.3,7,0+1.
func (f Flow) String() string {
	var text strings.Builder
	for i, n := range f {
		if i > 0 {
			text.WriteByte(';')
		}
		fmt.Fprintf(&text, "%d,%v,%v,%d,", n.Tasks, n.Mean, n.Spread, n.Seed)
		for k, before := range n.After {
			if k > 0 {
				text.WriteByte('+')
			}
			fmt.Fprint(&text, before)
		}
	}
	return text.String()
}

// Parse reads what String writes.
func Parse(text string) (Flow, error) {
	var f Flow
	for i, job := range strings.Split(text, ";") {
		n, err := parseNode(job, i)
		if err != nil {
			return nil, fmt.Errorf("job %d, %q: %w", i, job, err)
		}
		f = append(f, n)
	}
	return f, nil
}

func parseNode(text string, at int) (n Node, err error) {
	fields := strings.Split(text, ",")
	if len(fields) != 5 {
		return n, fmt.Errorf("%d fields: want tasks, mean, spread, seed and what it is after", len(fields))
	}
	if n.Tasks, err = strconv.Atoi(fields[0]); err != nil {
		return n, err
	}
	if n.Mean, err = time.ParseDuration(fields[1]); err != nil {
		return n, err
	}
	if n.Spread, err = strconv.ParseFloat(fields[2], 64); err != nil {
		return n, err
	}
	if n.Seed, err = strconv.ParseUint(fields[3], 10, 64); err != nil {
		return n, err
	}
	for before := range strings.SplitSeq(fields[4], "+") {
		if before == "" && fields[4] == "" {
			break
		}
		k, err := strconv.Atoi(before)
		if err != nil {
			return n, err
		}
		if k < 0 || k >= at {
			return n, fmt.Errorf("it is after job %d, which is not before it", k)
		}
		n.After = append(n.After, k)
	}
	if n.Tasks < max(1, len(n.After)) {
		return n, fmt.Errorf("%d tasks, after %d jobs", n.Tasks, len(n.After))
	}
	return n, nil
}
