package wire

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/quernmr/quern/internal/golden"
)

// TestGolden pins the bytes of every message.
func TestGolden(t *testing.T) {
	records := make(map[string]golden.Record)
	for n := byte(1); n <= lastNumber; n++ {
		m := blank(n)
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
	golden.Run(t, "testdata/golden/messages.txt", records)
}
