package waits

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
		"":                       "1 fields",
		"1,1s,0,1":               "4 fields",
		"x,1s,0,1,":              `"x"`,
		"1,x,0,1,":               `"x"`,
		"1,1s,x,1,":              `"x"`,
		"1,1s,0,-1,":             `"-1"`,
		"0,1s,0,1,":              "0 tasks",
		"1,1s,0,1,;1,1s,0,1,1":   "job 1, \"1,1s,0,1,1\": it is after job 1",
		"1,1s,0,1,;1,1s,0,1,0+0": "1 tasks, after 2 jobs",
		"1,1s,0,1,;1,1s,0,1,0+":  `""`,
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
