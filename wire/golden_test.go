package wire

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/quernmr/quern/internal/golden"
)

// TestGolden pins the bytes of every message, and of a block of map outputs.
func TestGolden(t *testing.T) {
	records := make(map[string]golden.Record)
	for n := byte(1); n <= lastNumber; n++ {
		m := newMessage(n)
		records[fmt.Sprint(n)] = golden.Record{
			Value: m, Form: golden.Msgpack, Head: frameHeader,
			Encode: func(m any) ([]byte, error) { return Append(nil, m.(Message)) },
			Decode: func(data []byte, into any) error {
				m, err := Read(bytes.NewReader(data))
				if err == nil {
					reflect.ValueOf(into).Elem().Set(reflect.ValueOf(m).Elem())
				}
				return err
			},
		}
	}
	records["outputs"] = golden.Record{
		Value: new(outputColumns), Form: golden.Msgpack, Encode: Marshal,
		Decode: func(data []byte, into any) error { return Unmarshal(data, into) },
	}
	golden.Run(t, "testdata/golden/messages.txt", records)
}

// TestWords pins the numbers of constants in messages, and their texts.
func TestWords(t *testing.T) {
	check := func(first int, words string, word func(n int) string) {
		t.Helper()
		for i, want := range strings.Fields(words) {
			if got := word(first + i); got != want {
				t.Errorf("%d is %q, want %q", first+i, got, want)
			}
		}
	}
	check(1, "waiting preparing running committing stopping succeeded failed killed", func(n int) string { return State(n).String() })
	check(1, "running ready succeeded failed killed", func(n int) string { return AttemptState(n).String() })
	check(1, "setup map reduce commit cleanup fence", func(n int) string { return Kind(n).String() })
	check(1, "s m r c x f", func(n int) string { return string(kindLetters[n]) })
	check(1, "node-local rack-local remote", func(n int) string { return Level(n).String() })
	check(-2, "VERY_LOW LOW NORMAL HIGH VERY_HIGH", func(n int) string { return Priority(n).String() })
}
