package tasktimes

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestFlow(t *testing.T) {
	f := Flow{
		{Job: Job{Seed: 1<<64 - 1, Mean: 450 * time.Millisecond, Spread: 0.3}, Tasks: 8},
		{Job: Job{Seed: 2, Mean: time.Second}, Tasks: 1, After: []int{0}},
		{Job: Job{Seed: 3, Mean: 1234567}, Tasks: 2, After: []int{0, 1}},
	}
	again, err := Parse(f.String())
	if err != nil || !reflect.DeepEqual(again, f) {
		t.Errorf("%s is read as %v (%v)", f, again, err)
	}
}

func TestFlowRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "unexpected end",
		"[]":                                    "without jobs",
		`[{"Tasks":"x"}]`:                       "Tasks",
		`[{"Seed":-1,"Tasks":1}]`:               "Seed",
		`[{"Tasks":0}]`:                         "job 0 has 0 tasks",
		`[{"Tasks":1},{"Tasks":1,"After":[1]}]`: "job 1 is after job 1",
		`[{"Tasks":1,"After":[-1]}]`:            "job 0 is after job -1",
		`[{"Tasks":1},{"Tasks":1,"After":[0,0]}]`: "job 1 has 1 tasks, after 2 jobs",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
