package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

// lastNumber is the highest message number in use.
const lastNumber = 34

// fillRandom fills a value of any message type at random. It leaves empty slices and maps nil,
// since nil and empty mean the same.
func fillRandom(t *rapid.T, v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillRandom(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, name) {
			v.Set(reflect.New(v.Type().Elem()))
			fillRandom(t, v.Elem(), name)
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 3).Draw(t, name); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fillRandom(t, v.Index(i), fmt.Sprint(name, i))
			}
		}
	case reflect.Map:
		minEntries := 0
		if v.Type() == reflect.TypeFor[map[string]int64]() {
			minEntries = 1 // a group of counters is never empty
		}
		n := rapid.IntRange(minEntries, 3).Draw(t, name)
		if n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for i := range n {
			value := reflect.New(v.Type().Elem()).Elem()
			fillRandom(t, value, fmt.Sprint(name, i))
			v.SetMapIndex(reflect.ValueOf(rapid.String().Draw(t, name)), value)
		}
	case reflect.String:
		v.SetString(rapid.String().Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, name))
	case reflect.Int8:
		v.SetInt(int64(rapid.Int8().Draw(t, name)))
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, name))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(t, name)))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, name))
	default:
		t.Fatalf("%s: messages have no fields of type %v", name, v.Type())
	}
}

func randomMessage(t *rapid.T) Message {
	m := newMessage(byte(rapid.IntRange(1, lastNumber).Draw(t, "number")))
	fillRandom(t, reflect.ValueOf(m).Elem(), reflect.TypeOf(m).Elem().Name())
	return m
}

// TestNumbers pins the number of each message.
func TestNumbers(t *testing.T) {
	names := strings.Fields(`Hello Welcome Refuse Inventory Heartbeat Report HomeReport OutputLost Launch Kill Grant
		SetHome Outputs DropJob WorkerHello Run WorkerProgress CommitReady CommitGranted WorkerDone Submission Plan
		Ack Staging NoStaging Capacity Shares Drained DriveHello DriveBegin DriveRun DriveKill DriveEnded DriveFailed`)
	for i, name := range names {
		m := newMessage(byte(i + 1))
		if m.number() != byte(i+1) || reflect.TypeOf(m).Elem().Name() != name {
			t.Errorf("number %d is %T with number %d, want %s", i+1, m, m.number(), name)
		}
	}
	if len(names) != lastNumber || newMessage(lastNumber+1) != nil || newMessage(0) != nil {
		t.Error("the test does not list every message")
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := rapid.SliceOfN(rapid.Custom(randomMessage), 1, 3).Draw(t, "messages")
		var stream []byte
		for _, m := range sent {
			var err error
			if stream, err = Append(stream, m); err != nil {
				t.Fatal(err)
			}
			again, err := Append(nil, m)
			if err != nil || !bytes.HasSuffix(stream, again) {
				t.Fatalf("equal messages gave different bytes: %v", err)
			}
		}
		r := bytes.NewReader(stream)
		for _, m := range sent {
			got, err := Read(r)
			if err != nil || !reflect.DeepEqual(got, m) {
				t.Fatalf("got %+v, %v\nwant %+v", got, err, m)
			}
		}
		if _, err := Read(r); err != io.EOF {
			t.Fatalf("after the last frame: %v, want io.EOF", err)
		}
		cut := rapid.IntRange(1, len(stream)-1).Draw(t, "cut")
		if err := readAll(stream[:cut]); err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("stream cut at %d: %v", cut, err)
		}
	})
}

// readAll reads frames until the first error.
func readAll(stream []byte) error {
	r := bytes.NewReader(stream)
	for {
		if _, err := Read(r); err != nil {
			return err
		}
	}
}

// TestLaterVersion reads a message with a field that this version does not know.
func TestLaterVersion(t *testing.T) {
	body, err := Marshal(struct {
		Job   JobID
		Later struct{ A []string }
		Epoch uint64
	}{Job: JobID{Start: 5, N: 6}, Epoch: 7})
	if err != nil {
		t.Fatal(err)
	}
	var drop DropJob
	if err := Unmarshal(body, &drop); err != nil || drop != (DropJob{Epoch: 7, Job: JobID{Start: 5, N: 6}}) {
		t.Errorf("got %+v, %v", drop, err)
	}
}

func frame(number byte, body ...byte) []byte {
	f := binary.BigEndian.AppendUint32(nil, uint32(len(body)+1))
	return append(append(f, number), body...)
}

func TestBadFrames(t *testing.T) {
	attempts := append([]byte{0x81, 0xa8}, "Attempts"...)
	for _, c := range []struct {
		name  string
		input []byte
		want  error
	}{
		{"no length", []byte{0, 0}, io.ErrUnexpectedEOF},
		{"length 0", []byte{0, 0, 0, 0, 1}, ErrFrameTooLarge},
		{"length above the bound", []byte{0, 0x40, 0, 1, 1}, ErrFrameTooLarge},
		{"length at the bound, then nothing", []byte{0, 0x40, 0, 0, 1}, io.ErrUnexpectedEOF},
		{"no body", frame(1), ErrMalformed},
		{"unknown number", frame(200, 0x80), ErrUnknownMessage},
		{"not a map", frame(1, 0x01), ErrMalformed},
		{"two values", frame(1, 0x80, 0x80), ErrMalformed},
		{"an extension", frame(1, 0xd4, 0x01, 0x01), ErrMalformed},
		{"four billion elements", frame(4, append(attempts, 0xdd, 0xff, 0xff, 0xff, 0xff)...), ErrMalformed},
		{"four million elements", frame(4, append(attempts, 0xdd, 0x00, 0x40, 0x00, 0x00)...), ErrMalformed},
		{"a million deep", frame(1, append([]byte{0x81, 0xa1, 'x'}, bytes.Repeat([]byte{0x91}, 1<<20)...)...), ErrMalformed},
	} {
		_, err := Read(bytes.NewReader(c.input))
		if !errors.Is(err, c.want) || errors.Is(err, io.EOF) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
	}
	_, err := Append(nil, &Refuse{Reason: strings.Repeat("x", MaxFrame)})
	if !errors.Is(err, ErrFrameTooLarge) {
		t.Errorf("sending a frame too large: %v", err)
	}
}

func TestReadAs(t *testing.T) {
	f, err := Append(nil, &Refuse{Reason: "full"})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := ReadAs[*Refuse](bytes.NewReader(f)); err != nil || m.Reason != "full" {
		t.Errorf("got %+v, %v", m, err)
	}
	if _, err := ReadAs[*Hello](bytes.NewReader(f)); err == nil || !strings.Contains(err.Error(), "*wire.Refuse") {
		t.Errorf("a Refuse read as a Hello: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for n := byte(1); n <= lastNumber; n++ {
		seed, err := Append(nil, newMessage(n))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Add(frame(4, append([]byte{0x81, 0xa8}, "Attempts\xdd\xff\xff\xff\xff"...)...))
	f.Add(frame(21, nestedBody("Plan", listBody("Jobs", 10_000, 0xc0))...))
	f.Add(frame(20, nestedBody("Result", listBody("Lost", 1_000, 0x80))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Message
		var err error
		bound := membound.Bound{Free: 2 * freeMemory, PerByte: 2 * memoryPerByte}
		bound.Check(t, len(data), func() { m, err = Read(bytes.NewReader(data)) })
		if err != nil {
			return
		}
		once, err := Append(nil, m)
		if err != nil {
			t.Fatalf("a message was read but cannot be sent: %v", err)
		}
		again, err := Read(bytes.NewReader(once))
		if err != nil {
			t.Fatalf("a message was sent but cannot be read: %v", err)
		}
		twice, err := Append(nil, again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%+v changed on its way: %v", m, err)
		}
	})
}
