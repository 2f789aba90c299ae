package writable

import (
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// parsed returns the value of a class that testdata/values.txt describes, as Any takes it.
func parsed(t *testing.T, class, text string) any {
	t.Helper()
	integer := func(bits int) int64 {
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	real := func(bits int) float64 {
		n, err := strconv.ParseFloat(text, bits)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	data := func() []byte {
		b, err := hex.DecodeString(strings.TrimPrefix(text, "x"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	switch class {
	case "LongWritable":
		return integer(64)
	case "IntWritable":
		return int32(integer(32))
	case "ShortWritable":
		return int16(integer(16))
	case "ByteWritable":
		return int8(integer(8))
	case "VIntWritable":
		return Varint(integer(32))
	case "VLongWritable":
		return Varlong(integer(64))
	case "DoubleWritable":
		return real(64)
	case "FloatWritable":
		return float32(real(32))
	case "BooleanWritable":
		return text == "true"
	case "NullWritable":
		return struct{}{}
	case "Text":
		return string(data())
	case "BytesWritable":
		return data()
	case "MapWritable":
		m := []Entry[any, any]{}
		if key, value, ok := strings.Cut(text, "="); ok {
			of, value, _ := strings.Cut(value, ":")
			m = append(m, Entry[any, any]{parsed(t, "Text", key), parsed(t, of, value)})
		}
		return m
	}
	t.Fatalf("class %s", class)
	return nil
}

// TestHadoop: values have the bytes that Hadoop's classes write.
func TestHadoop(t *testing.T) {
	text, err := os.ReadFile("testdata/values.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		class, value, want := words[0], words[1], words[2]
		var data []byte
		if class == "HadoopFiles$Ints" {
			var ints []int32
			for part := range strings.SplitSeq(value, ",") {
				if part != "" {
					ints = append(ints, parsed(t, "IntWritable", part).(int32))
				}
			}
			data, err = Array(class, Int).Append(nil, ints)
		} else {
			v := parsed(t, simple(class), value)
			data, err = appendAny(nil, v)
			if back, ok, err := Decode(class, data); !ok || err != nil || fmt.Sprint(back) != fmt.Sprint(v) {
				t.Errorf("%s %s: %s is %v, %v", class, value, want, back, err)
			}
		}
		if n++; err != nil || hex.EncodeToString(data) != want {
			t.Errorf("%s %s: %x, %v; Hadoop has %s", class, value, data, err, want)
		}
	}
	if n < 100 {
		t.Errorf("compared %d values", n)
	}
}
