package sequence_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/quernmr/quern/formats/sequence"
	"github.com/quernmr/quern/sequencefile/writable"
)

// TestPartitions: a partition file has the keys that were written, and the same bytes each time. A file with keys of
// another class, or cut off, is an error.
func TestPartitions(t *testing.T) {
	words := sequence.Partitions(writable.Text)
	for _, keys := range [][]string{nil, {"b"}, {"", "dog", "over"}} {
		var file, again bytes.Buffer
		if err := words.Write(&file, keys); err != nil {
			t.Fatal(err)
		}
		if err := words.Write(&again, keys); err != nil || !bytes.Equal(file.Bytes(), again.Bytes()) {
			t.Errorf("%q: another file, %v", keys, err)
		}
		var got []string
		for k, err := range words.Read(bytes.NewReader(file.Bytes()), int64(file.Len())) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, k)
		}
		if !slices.Equal(got, keys) {
			t.Errorf("read %q, want %q", got, keys)
		}
		if err := firstError(sequence.Partitions(writable.Long).Read(bytes.NewReader(file.Bytes()), int64(file.Len()))); err == nil {
			t.Errorf("%q read as numbers", keys)
		}
		cut := file.Bytes()[:file.Len()-1]
		if err := firstError(words.Read(bytes.NewReader(cut), int64(len(cut)))); err == nil {
			t.Errorf("%q: no error in a file that is cut off", keys)
		}
	}
}

func firstError[K any](keys func(func(K, error) bool)) (err error) {
	for _, err = range keys {
		if err != nil {
			return err
		}
	}
	return nil
}
