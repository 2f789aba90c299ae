package runtime

import (
	"fmt"
	"path"
	"strings"

	"github.com/quernmr/quern/dfs"
)

// packing is a compression or archive format.
type packing struct {
	what    string // for errors
	read    bool   // this package can decompress it
	archive bool   // has several files, which a record reader could not separate
}

const (
	gzipped = "gzip data"
	zstded  = "zstd data"
)

// packings has the formats by suffix of a file's name, in lower case.
var packings = map[string]packing{
	".gz":  {what: gzipped, read: true},
	".zst": {what: zstded, read: true},

	".br":          {what: "Brotli data"},
	".bz":          {what: "bzip data"},
	".bz2":         {what: "bzip2 data"},
	".deflate":     {what: "zlib data"},
	".gzip":        {what: gzipped},
	".lz":          {what: "lzip data"},
	".lz4":         {what: "LZ4 data"},
	".lzma":        {what: "LZMA data"},
	".lzo":         {what: "LZO data"},
	".lzo_deflate": {what: "LZO data"},
	".snappy":      {what: "Snappy data"},
	".sz":          {what: "Snappy data"},
	".xz":          {what: "XZ data"},
	".z":           {what: "data of compress or pack"},
	".zstd":        {what: zstded},

	".7z":   {what: "a 7z archive", archive: true},
	".rar":  {what: "a RAR archive", archive: true},
	".tar":  {what: "a tar archive", archive: true},
	".tbz":  {what: "a packed tar archive", archive: true},
	".tbz2": {what: "a packed tar archive", archive: true},
	".tgz":  {what: "a packed tar archive", archive: true},
	".txz":  {what: "a packed tar archive", archive: true},
	".tzst": {what: "a packed tar archive", archive: true},
	".zip":  {what: "a zip archive", archive: true},
}

// packingOf looks up the last suffix of a name, in any case.
func packingOf(name string) (p packing, suffix string) {
	suffix = path.Ext(name)
	return packings[strings.ToLower(suffix)], suffix
}

// compressed returns the compression format that this package decompresses, "" for none.
// Output names of jobs have no such suffix.
func compressed(name string) string {
	if p, _ := packingOf(name); p.read {
		return p.what
	}
	return ""
}

// checkPacking refuses a file if its compressed bytes would be read as records. It also
// refuses an empty file with a compressed format's name: Hadoop's maps fail on it too.
// Archives may be read as whole files.
func checkPacking(file dfs.Info, whole bool) error {
	name := file.Name
	p, suffix := packingOf(name)
	what, readable := p.what, p.read || p.archive && whole
	if inner, _ := packingOf(strings.TrimSuffix(name, suffix)); p.read && !whole && inner.what != "" {
		what, readable = inner.what+" within "+p.what, false
	}
	switch {
	case p.read && readable && file.Size == 0:
		return fmt.Errorf("%w: %s is empty, but by its name it is %s, which is never empty; remove the file or write it again",
			ErrInput, name, what)
	case what == "" || readable:
		return nil
	}
	return fmt.Errorf("%w: %s is %s by its name, which cannot be read; unpack it, or compress the content with gzip (.gz) or zstd (.zst); if the name is misleading, rename it",
		ErrInput, name, what)
}
