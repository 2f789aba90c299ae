package shuffle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestVerify checks that any changed or missing byte is detected.
func TestVerify(t *testing.T) {
	file, _ := smallSegment(t)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	index, err := Verify(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := ReadIndex(file); err != nil || index.Digest() != want.Digest() {
		t.Errorf("digest %x, want %x, %v", index.Digest(), want.Digest(), err)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	refuses := func(change string, at int, text []byte) {
		t.Helper()
		if err := os.WriteFile(bad, text, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Verify(t.Context(), bad)
		if _, corrupt := errors.AsType[*CorruptError](err); !corrupt {
			t.Fatalf("%s at %d: %v", change, at, err)
		}
	}
	for at := range good {
		if at > 150 && at < len(good)-150 && at%5003 != 0 {
			continue // the bytes of the large value are equal
		}
		text := slices.Clone(good)
		text[at] ^= 1
		refuses("changed", at, text)
		if at%10 == 0 {
			refuses("cut", at, good[:at])
		}
	}
	if _, err := Verify(t.Context(), filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// TestVerifyLarge checks that damage in a block of one large record is detected.
func TestVerifyLarge(t *testing.T) {
	cfg, _ := collect(t, Config{Partitions: 1, Memory: 1 << 20}, largeKeys())
	if _, err := Verify(t.Context(), cfg.File); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(cfg.File, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0xff, 0xfe}, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	_, err = Verify(t.Context(), cfg.File)
	if _, corrupt := errors.AsType[*CorruptError](err); !corrupt {
		t.Errorf("got %v", err)
	}
}
