package facts

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// notCopied lists the views that return no copies, as views.go says.
var notCopied = []string{"Pools", "Plan", "Body"}

// TestViewsAreCopies overwrites all that Facts return and all applied entries, and checks that
// Facts do not change.
func TestViewsAreCopies(t *testing.T) {
	l := begin(t)
	settings := func() wire.Settings { return wire.Settings{SLA: []wire.SLAStep{{After: time.Hour, Cost: 1}}} }
	kept := []Fact{
		&SettingsChanged{Key: "k", N: 1, Settings: settings()},
		&Drain{N: 1, Tracker: "t1"},
		&OperatorExcluded{Exclusion: OperatorExclusion{N: 1, Tracker: "t1", By: "ann"}},
		&SchedulingChanged{N: 1},
		&PoolsChanged{N: 1, Table: pool.Table{Pools: []pool.Pool{{Name: "p", Submitters: []string{"u"}}}}},
		&Submitted{Submission: wire.Submission{
			Key: "l", Staging: "mem://s/l", Settings: settings(), Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n"}, {Name: "o"}}},
		}},
		&Stopped{Job: 1, Outcome: wire.Failed, Reason: "why"},
		&Ended{Job: 1, Outcome: wire.Failed, Error: "why", Troubles: []string{"a", "b"}, Counters: []Counter{{"g", "n", 1}}},
		&Stopped{Job: 2, Outcome: wire.Killed, Reason: "why"},
	}
	for _, x := range kept {
		l.index++
		if !l.facts.Apply(l.index, 1, x) {
			t.Fatalf("%s does not fit", x.Name())
		}
	}
	before := l.snapshot()
	for _, x := range kept {
		switch x.(type) {
		case *Submitted, *PoolsChanged: // Apply does not copy these large ones
		default:
			scribble(reflect.ValueOf(x))
			if !bytes.Equal(l.snapshot(), before) {
				t.Fatalf("overwriting the entry changes Facts: %s", x.Name())
			}
		}
	}
	views := []any{l.facts}
	for j := range l.facts.Jobs() {
		views = append(views, j)
		if j.N() == j.Submission().First() {
			views = append(views, j.Submission())
		}
	}
	overwritten := 0
	for _, view := range views {
		v := reflect.ValueOf(view)
		for i := range v.NumMethod() {
			m := v.Type().Method(i)
			if m.Type.NumIn() > 1 || slices.Contains(notCopied, m.Name) {
				continue
			}
			for _, result := range v.Method(i).Call(nil) {
				overwritten += scribble(result)
			}
			if !bytes.Equal(l.snapshot(), before) {
				t.Fatalf("overwriting what %T.%s returns changes Facts", view, m.Name)
			}
		}
	}
	if overwritten < 5 {
		t.Errorf("only %d values were overwritten", overwritten)
	}
}

func (l *testLog) snapshot() []byte {
	data, err := l.facts.Snapshot()
	if err != nil {
		l.t.Fatal(err)
	}
	return data
}

// scribble overwrites everything that can be set and reached from a value. It returns the
// number of list elements.
func scribble(v reflect.Value) (elements int) {
	if v.CanSet() {
		switch v.Kind() {
		case reflect.String:
			v.SetString("scribbled")
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			v.SetInt(77)
		case reflect.Uint8, reflect.Uint, reflect.Uint64:
			v.SetUint(77)
		case reflect.Float64:
			v.SetFloat(77)
		case reflect.Bool:
			v.SetBool(!v.Bool())
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			elements += scribble(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			elements += scribble(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			elements += 1 + scribble(v.Index(i))
		}
	case reflect.Map:
		if v.CanInterface() {
			elements += v.Len()
			v.Clear()
		}
	}
	return elements
}
