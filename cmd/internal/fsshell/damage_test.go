package fsshell

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/internal/membound"
)

// damaged returns a copy of a file with a damage anywhere in it: flipped, lost, more or zeroed bytes, or a lost end.
func damaged(file []byte, random *rand.Rand) []byte {
	bad := bytes.Clone(file)
	at := random.IntN(len(bad))
	switch random.IntN(5) {
	case 0:
		bad[at] ^= 1 << random.IntN(8)
	case 1:
		bad = bad[:at]
	case 2:
		bad = append(bad[:at], bad[min(at+1+random.IntN(40), len(bad)):]...)
	case 3:
		bad = append(bad[:at:at], append([]byte{0xff, 0, 0x7f, byte(at)}, bad[at:]...)...)
	case 4:
		copy(bad[at:], make([]byte, 8))
	}
	return bad
}

// TestDamagedFiles: -text of 200 damages of each of the peers' files prints right lines, or an error with the file's
// name and an offset; memory is bounded. Files without checksums, as DuckDB's and headers of Avro files, may give changed lines.
func TestDamagedFiles(t *testing.T) {
	var names []string
	for _, pattern := range []string{"compression/testdata/hadoop/lines.*", "sequencefile/testdata/hadoop/texts-*.seq", "avrofile/testdata/java/pairs-*.avro", "parquetfile/testdata/*.parquet"} {
		found, err := filepath.Glob(filepath.Join("../../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	if len(names) != 21 {
		t.Fatalf("%d files, want 5 codecs, SequenceFiles with 3 kinds of compression by 4 codecs, Avro files of 5 codecs, and 2 Parquet files", len(names))
	}
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(name), func(t *testing.T) { textOfDamages(t, filepath.Base(name), file) })
	}
}

func textOfDamages(t *testing.T, name string, file []byte) {
	t.Chdir(t.TempDir())
	checksums := !strings.HasPrefix(name, "texts-none") && !strings.HasPrefix(name, "texts-record") && !strings.Contains(name, "lz4") && !strings.Contains(name, "snappy") && !strings.HasSuffix(name, ".avro") && !strings.HasSuffix(name, ".parquet")
	text := func(content []byte) (stdout, stderr string, code int) {
		if err := os.WriteFile(name, content, 0o666); err != nil {
			t.Fatal(err)
		}
		membound.Bound{Free: 32 << 20, PerByte: 8 << 10}.Check(t, len(content), func() { stdout, stderr, code = answer(t, []string{"-text", name}, "") })
		return stdout, stderr, code
	}
	right, stderr, code := text(file)
	if code != exitDone || right == "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	random := rand.New(rand.NewPCG(7, 8))
	failed := 0
	for i := range 200 {
		bad := damaged(file, random)
		got, stderr, code := text(bad)
		if code != exitDone {
			failed++
		}
		if (code == exitDone) != (stderr == "") || code != exitDone && (!strings.HasPrefix(stderr, "text: "+name+": ") || !strings.Contains(stderr, "offset")) {
			t.Errorf("damage %d: exit code %d, %q", i, code, stderr)
		}
		magic := bytes.HasPrefix(bad, file[:min(4, len(file))]) // else it may be another kind of file
		shorter := len(bad) < len(file) && strings.HasPrefix(right, got)
		if code == exitDone && checksums && magic && got != right && !shorter {
			t.Errorf("damage %d: wrong lines without an error: %d bytes", i, len(got))
		}
	}
	if failed < 50 {
		t.Errorf("only %d of 200 damages gave errors", failed)
	}
}

// TestTextOfBinary: -text refuses the binary records of a job.
func TestTextOfBinary(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{"part-r-00000": "x", "_types": "string\tint64\n"} {
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr, code := answer(t, []string{"-text", "part-r-00000"}, "")
	if code == exitDone || stdout != "" || !strings.Contains(stderr, "text: part-r-00000: it has binary records of a job") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}
