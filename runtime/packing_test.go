package runtime

import (
	"errors"
	"math"
	"path"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// TestPackings checks that compressed bytes are never read as records, and that formats
// without a decompressor are refused by name before reading.
func TestPackings(t *testing.T) {
	const (
		records = "lines keyvalues records"
		every   = records + " files"
	)
	f := mem.New(1 << 20)
	for name, refused := range map[string]string{ // to the formats that refuse it
		"x.xz": every, "x.sz": every, "x.lzo": every, "x.lzo_deflate": every,
		"x.br": every, "x.lzma": every, "x.Z": every, "x.zstd": every, "UPPER.LZO": every, "dir.d/x.lzo": every,
		"x.zip": records, "x.tar": records, "x.TGZ": records, "x.7z": records,
		"x.tar.gz": records, "x.bz2.zst": records, "x.gz.gz": records, "x.Tar.GZ": records,
		"x.txt": "", "x": "", "x.gz": "", "x.GZ": "", "x.zst": "", "x.Zst": "", "x.bz2": "", "x.lz4": "", "x.snappy": "", "x.Deflate": "", "bz2": "", "x.bz2.txt": "", "x.2024.gz": "", "dir.bz2/x": "",
	} {
		url := "mem://t/" + name
		content := []byte("a line\n")
		putFile(f, url, compress(path.Ext(name), content))
		for _, format := range strings.Fields(every + " binary own") {
			in := wire.InputPlan{Format: format, Paths: []string{url}, RecordSize: len(content)}
			_, err := inputFiles(f, &in, formatOf(&in), splitSettings(math.MaxInt64))
			if strings.Contains(refused, format) {
				if !errors.Is(err, ErrInput) || !isFatal(err) || strings.Count(err.Error(), name) != 1 {
					t.Errorf("%s as %s: %v", name, format, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s as %s: %v", name, format, err)
				continue
			}
			if format != formatLines {
				continue
			}
			if got, _ := readLines(t, reader(t, f, in, splitSettings(math.MaxInt64), 64)); len(got) != 1 || got[0] != "a line" {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}
