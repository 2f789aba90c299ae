package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/quernmr/quern/internal/membound"
)

// listBody makes a body with one field, a list of n one-byte elements.
func listBody(field string, n int, element byte) []byte {
	body := append([]byte{0x81, 0xa0 | byte(len(field))}, field...)
	body = binary.BigEndian.AppendUint32(append(body, 0xdd), uint32(n))
	return append(body, bytes.Repeat([]byte{element}, n)...)
}

// nestedBody makes a body with one field, which is another body.
func nestedBody(field string, body []byte) []byte {
	return append(append([]byte{0x81, 0xa0 | byte(len(field))}, field...), body...)
}

// TestInflated reads frames with one-byte elements. Without the limit, frames of 200 KB would take
// 20 to 80 MB, and the largest frame 1.6 GB.
func TestInflated(t *testing.T) {
	counters := append([]byte{0x81, 0xa8}, "Counters"...)
	counters = append(counters, 0xde, 0xff, 0xff)
	for i := range 65535 {
		counters = append(counters, 0xa3, byte(i>>16), byte(i>>8), byte(i), 0x81, 0xa0, 0x00)
	}
	const n = 200_000
	for _, c := range []struct {
		name   string
		number byte
		body   []byte
	}{
		{"a frame of jobs", 21, nestedBody("Plan", listBody("Jobs", MaxFrame-100, 0xc0))},
		{"jobs", 21, nestedBody("Plan", listBody("Jobs", n, 0xc0))},
		{"empty jobs", 21, nestedBody("Plan", listBody("Jobs", n, 0x80))},
		{"jobs as lists", 21, nestedBody("Plan", append([]byte{0x92, 0xa0}, listBody("Jobs", n, 0x90)[6:]...))},
		{"reports", 4, listBody("Attempts", n, 0xc0)},
		{"homes", 4, listBody("Homes", n, 0xc0)},
		{"outputs", 13, listBody("Lists", n, 0x80)},
		{"lost outputs", 20, nestedBody("Result", listBody("Lost", n, 0xc0))},
		{"counters", 20, nestedBody("Result", counters)},
	} {
		sent := frame(c.number, c.body...)
		var err error
		took := membound.Allocated(func() { _, err = Read(bytes.NewReader(sent)) })
		if !errors.Is(err, ErrInflated) {
			t.Errorf("%s: %v", c.name, err)
		}
		if limit := 10*uint64(len(sent)) + 1<<20; took > limit { // mostly for reading the frame
			t.Errorf("%s: refusal took %d bytes of memory for %d", c.name, took, len(sent))
		}
	}
}

// TestInflatedFiles decodes files and log entries with one-byte elements, with both functions.
func TestInflatedFiles(t *testing.T) {
	body := nestedBody("Plan", listBody("Jobs", 200_000, 0xc0))
	for name, decode := range map[string]func([]byte, any) error{"Unmarshal": Unmarshal, "UnmarshalKnown": UnmarshalKnown} {
		membound.Bound{Free: 1 << 20}.Check(t, len(body), func() {
			if err := decode(body, new(Submission)); !errors.Is(err, ErrInflated) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestWeighedFields: a field that is not encoded is none of the fields of a list.
func TestWeighedFields(t *testing.T) {
	fields := fieldsOf(reflect.TypeFor[JobStatus]())
	if _, ok := fields.named["-"]; ok || fields.all[16] != fields.named["Flow"] {
		t.Errorf("Access is weighed: field 16 is a %v", fields.all[16])
	}
}

// TestFullFrames reads valid messages that fill a frame.
func TestFullFrames(t *testing.T) {
	sub := &Submission{Plan: Plan{Jobs: make([]JobPlan, MaxJobs)}}
	for i := range sub.Plan.Jobs {
		j := &sub.Plan.Jobs[i]
		j.Inputs = []InputPlan{{Paths: []string{fmt.Sprintf("/in/%d", i)}}}
		j.Properties = map[string]string{"mapreduce.job.reduces": "1"}
	}
	paths := &Submission{Plan: Plan{Jobs: []JobPlan{{Inputs: []InputPlan{{Paths: make([]string, MaxInputs)}}}}}}
	for i := range MaxInputs {
		paths.Plan.Jobs[0].Inputs[0].Paths[i] = fmt.Sprint("file:///data/in/part-", i)
	}
	inventory := &Inventory{Attempts: make([]Report, 5000)}
	for i := range inventory.Attempts {
		inventory.Attempts[i].Result = &Result{Counters: Counters{"g": {"a": 1, "b": 2}}, Output: &MapOutput{}}
	}
	beat := &Heartbeat{Attempts: make([]Report, 30_000)}
	outputs := &Outputs{Lists: make([]OutputList, 50_000)}
	shares := &Shares{Shares: make([]JobShare, 100_000)}
	done := &WorkerDone{Result: Result{Counters: make(Counters)}}
	for i := range CountersMax.Max {
		done.Result.Counters.Add(fmt.Sprint(i%CounterGroupsMax.Max), fmt.Sprint(i), 1)
	}
	for _, m := range []Message{sub, paths, inventory, beat, outputs, shares, done} {
		sent, err := Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read(bytes.NewReader(sent)); err != nil {
			t.Errorf("%d bytes: %v", len(sent), err)
		}
	}
}

// TestWeighedTypes checks that messages use only types that the weigher handles.
func TestWeighedTypes(t *testing.T) {
	var visit func(path string, typ reflect.Type)
	visit = func(path string, typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Struct:
			if 2*typ.Size() > maxMemoryOfByte {
				t.Errorf("%s takes %d bytes: see maxMemoryOfByte", path, typ.Size())
			}
			for i := range typ.NumField() {
				f := typ.Field(i)
				if f.Anonymous || !f.IsExported() {
					t.Errorf("%s.%s: the weigher knows no such field", path, f.Name)
				}
				visit(path+"."+f.Name, f.Type)
			}
		case reflect.Slice, reflect.Pointer:
			visit(path, typ.Elem())
		case reflect.Map:
			if mapWeight(1, int(typ.Key().Size()+typ.Elem().Size())) > maxMemoryOfByte {
				t.Errorf("%s: see maxMemoryOfByte", path)
			}
			visit(path, typ.Elem())
		case reflect.Interface, reflect.Array:
			t.Errorf("%s: the weigher knows no %v", path, typ.Kind())
		}
		if p := reflect.New(typ).Interface(); typ.Kind() != reflect.Pointer {
			if _, ok := p.(interface{ UnmarshalText([]byte) error }); ok {
				t.Errorf("%s decodes itself", path)
			}
			if _, ok := p.(interface{ UnmarshalBinary([]byte) error }); ok {
				t.Errorf("%s decodes itself", path)
			}
		}
	}
	for n := byte(1); n <= lastNumber; n++ {
		typ := reflect.TypeOf(newMessage(n)).Elem()
		visit(typ.Name(), typ)
	}
}

func BenchmarkRead(b *testing.B) {
	beat := &Heartbeat{}
	for i := range 100 {
		beat.Attempts = append(beat.Attempts, Report{Attempt: AttemptID{Task: TaskID{Job: JobID{Start: 1700000000000, N: 12}, Kind: Map, N: i}, N: 1000}, State: AttemptRunning, Bytes: Progress{Done: 123456, Total: 12345678}})
	}
	sent, err := Append(nil, beat)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(sent)))
	for b.Loop() {
		if _, err := Read(bytes.NewReader(sent)); err != nil {
			b.Fatal(err)
		}
	}
}
