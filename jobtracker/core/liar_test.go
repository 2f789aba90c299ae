package core

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/wire"
)

// liar makes messages of a task tracker that may say anything. Its names are those of jobs and task trackers that
// exist, and its numbers are often at a limit.
type liar struct{ *rand.Rand }

func (l liar) number() int64 {
	some := []int64{-1, 0, 0, 1, 1, 2, 3, 5, 7, 1000, 1001, math.MaxInt32, math.MaxInt64, math.MinInt64, math.MaxInt64 / 2}
	return some[l.IntN(len(some))]
}

// fill sets all fields of a value.
func (l liar) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(l.number())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(l.number()))
	case reflect.Float32, reflect.Float64:
		some := []float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64}
		v.SetFloat(some[l.IntN(len(some))])
	case reflect.Bool:
		v.SetBool(l.IntN(2) == 0)
	case reflect.String:
		some := []string{"", "t1", "t2", "job_1700000000000_0001", "a\x00\xff", string(make([]byte, 5000))}
		v.SetString(some[l.IntN(len(some))])
	case reflect.Pointer:
		if l.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			l.fill(v.Elem())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), l.IntN(4), 4))
		for i := range v.Len() {
			l.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range l.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			l.fill(key)
			l.fill(value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				l.fill(v.Field(i))
			}
		}
		if l.IntN(4) > 0 {
			l.likely(v.Addr().Interface())
		}
	}
}

// likely sets ids that exist.
func (l liar) likely(v any) {
	switch v := v.(type) {
	case *wire.JobID:
		*v = wire.JobID{Start: scenarioStart, N: 1 + l.IntN(2)}
	case *wire.TaskID:
		*v = wire.TaskID{Job: wire.JobID{Start: scenarioStart, N: 1 + l.IntN(2)}, Kind: wire.Kind(1 + l.IntN(6)), N: l.IntN(6)}
	case *wire.AttemptID:
		l.likely(&v.Task)
		v.N = 1000 + l.IntN(3)
	case *wire.Generation:
		*v = wire.Generation{Epoch: 1, N: 1 + l.IntN(3)}
	case *wire.Report:
		v.State = wire.AttemptState(l.IntN(7))
		if v.Result == nil && l.IntN(2) == 0 {
			v.Result = new(wire.Result)
			l.fill(reflect.ValueOf(v.Result).Elem())
		}
	}
}

// message returns a message that a task tracker may send.
func (l liar) message() wire.Message {
	all := []wire.Message{&wire.Hello{}, &wire.Inventory{}, &wire.Heartbeat{}, &wire.Report{}, &wire.Report{}, &wire.HomeReport{}, &wire.OutputLost{}, &wire.Capacity{}, &wire.NoStaging{}}
	m := all[l.IntN(len(all))]
	l.fill(reflect.ValueOf(m).Elem())
	if h, ok := m.(*wire.Hello); ok { // else it is refused at once
		h.Version, h.Tracker = wire.Version, "t2"
	}
	return m
}

// TestLiar: a task tracker that sends messages with any content does not end the leader, under any scheduler.
func TestLiar(t *testing.T) {
	for seed := range uint64(min(*seeds, 100)) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			l := liar{rand.New(rand.NewPCG(seed, 1))}
			s := newScenario(t)
			do := func(text string) {
				t.Helper()
				cmd, args, err := datadriven.ParseLine(text)
				if err != nil {
					t.Fatal(err)
				}
				s.run(t, &datadriven.TestData{Cmd: cmd, CmdArgs: args})
			}
			do("elect")
			do("cluster t1=2,2 t2=2,2")
			do("schedule scheduler=" + []string{"fifo", "fair", "flex", "flowflex", "maxsrpt", "splitsrpt", "srpt", "hmhs"}[l.IntN(8)])
			do("submit key=a reduces=2")
			do("report t1 job1/s0/1000 succeeded splits=6")
			do("splits job1 1 1 1 1 1 1")
			do("submit key=b reduces=1")
			for range 60 {
				m := l.message()
				if s.streams["t2"] == 0 {
					do("cluster t2=2,2")
				}
				s.step(FromTracker{Stream: s.streams["t2"], Message: m})
				if l.IntN(3) == 0 {
					s.tick(time.Duration(l.IntN(3000)) * time.Millisecond)
				}
			}
		})
	}
}
