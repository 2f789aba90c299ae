package testbed

import (
	"errors"
	"io"
	"testing"

	"github.com/quernmr/quern/dfs/mem"
)

// TestDigest: the digest depends only on the bytes of the joined part files. An empty output has
// none.
func TestDigest(t *testing.T) {
	f := mem.New(1 << 20)
	put := func(name, content string) {
		w, err := f.Create(name)
		if err == nil {
			_, err = io.WriteString(w, content)
			err = errors.Join(err, w.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"mem://t/a", "mem://t/b", "mem://t/c", "mem://t/empty", "mem://t/none"} {
		if err := f.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		put(dir+"/_SUCCESS", dir)
	}
	put("mem://t/a/part-r-00000", "xyz")
	put("mem://t/b/part-r-00000", "x")
	put("mem://t/b/part-r-00001", "yz")
	put("mem://t/c/part-m-00000", "xyy")
	put("mem://t/empty/part-r-00000", "")
	sums := make(map[string][32]byte)
	for _, dir := range []string{"a", "b", "c"} {
		sum, err := Digest(f, "mem://t/"+dir)
		if err != nil {
			t.Fatal(err)
		}
		sums[dir] = sum
	}
	if sums["a"] != sums["b"] || sums["a"] == sums["c"] {
		t.Errorf("%x", sums)
	}
	for _, dir := range []string{"empty", "none"} {
		if sum, err := Digest(f, "mem://t/"+dir); err == nil {
			t.Errorf("%s: %x", dir, sum)
		}
	}
}
