package tasktimes

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Flow is jobs in topological order.
type Flow []Node

// Node is a job of a flow.
type Node struct {
	Job
	Tasks int   `json:"Tasks"`           // maps
	After []int `json:"After,omitempty"` // positions of the jobs that it reads; each map reads one of them
}

// String returns the flow as an argument of the program.
func (f Flow) String() string {
	text, err := json.Marshal(f)
	if err != nil {
		panic(err) // numbers always marshal
	}
	return string(text)
}

// Parse reads a flow that String wrote.
func Parse(text string) (f Flow, err error) {
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return nil, err
	}
	if len(f) == 0 {
		return nil, errors.New("a flow without jobs")
	}
	for i, n := range f {
		for _, before := range n.After {
			if before < 0 || before >= i {
				return nil, fmt.Errorf("job %d is after job %d, which is not before it", i, before)
			}
		}
		if n.Tasks < max(1, len(n.After)) {
			return nil, fmt.Errorf("job %d has %d tasks, after %d jobs", i, n.Tasks, len(n.After))
		}
	}
	return f, nil
}
