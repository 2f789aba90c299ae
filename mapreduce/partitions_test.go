package mapreduce

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// partitionOf returns the partition of a key, of 1000.
func partitionOf[T any](t *testing.T, key T) int {
	_, hash := textAndHash(t, key)
	return int(hash&math.MaxInt32) % 1000
}

// hadoopKeyPartition returns the partition of a key with the class and bytes of Hadoop's; -1 for a class with bytes of
// another length in each value.
func hadoopKeyPartition(t *testing.T, class string, b []byte) int {
	switch class {
	case "IntWritable":
		return partitionOf(t, int32(binary.BigEndian.Uint32(b)))
	case "LongWritable":
		return partitionOf(t, int64(binary.BigEndian.Uint64(b)))
	case "ShortWritable":
		return partitionOf(t, int16(binary.BigEndian.Uint16(b)))
	case "ByteWritable":
		return partitionOf(t, int8(b[0]))
	case "FloatWritable":
		return partitionOf(t, math.Float32frombits(binary.BigEndian.Uint32(b)))
	case "DoubleWritable":
		return partitionOf(t, math.Float64frombits(binary.BigEndian.Uint64(b)))
	case "BooleanWritable":
		return partitionOf(t, b[0] != 0)
	case "Text": // after its length, which is short
		return partitionOf(t, string(b[1:]))
	case "BytesWritable":
		return partitionOf(t, b[4:])
	case "NullWritable":
		return partitionOf(t, struct{}{})
	}
	return -1
}

// TestHadoopPartitions compares partitions with those of Hadoop's HashPartitioner, which `make compat` records in
// testdata/partitions.txt. A VIntWritable and a VLongWritable follow the IntWritable and LongWritable of their value.
func TestHadoopPartitions(t *testing.T) {
	f, err := os.Open("testdata/partitions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	classes := make(map[string]int)
	fixed := 0 // partition of the key before
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var class, text string
		var want int
		if n, _ := fmt.Sscanf(lines.Text(), "%s %s %d", &class, &text, &want); n != 3 || class == "#" {
			continue
		}
		b, err := hex.DecodeString(strings.TrimPrefix(text, "x"))
		if err != nil {
			t.Fatal(err)
		}
		got := hadoopKeyPartition(t, class, b)
		if strings.HasPrefix(class, "V") {
			got = fixed
		}
		if fixed = got; got != want {
			t.Errorf("%s %s: partition %d, want %d", class, text, got, want)
		}
		classes[class]++
	}
	if len(classes) != 12 || classes["VLongWritable"] != 8 {
		t.Errorf("keys of the classes %v", classes)
	}
}
