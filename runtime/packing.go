package runtime

import (
	"fmt"
	"path"
	"strings"

	"github.com/quernmr/quern/dfs"
)

// packing is how a file's data is packed.
type packing struct {
	what    string // for errors
	read    bool   // by this package
	archive bool   // of several files, which a reader of records could not tell apart
}

const (
	gzipped = "gzip data"
	zstded  = "zstd data"
)

// packings has the suffixes of names that say how a file is packed, in lower case.
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

// packingOf goes by the last suffix of a name, whatever its case.
func packingOf(name string) (p packing, suffix string) {
	suffix = path.Ext(name)
	return packings[strings.ToLower(suffix)], suffix
}

// compressed is how the data of a file is compressed that this package unpacks; "" of
// any other. Of what jobs have written it is "", by the names.
func compressed(name string) string {
	if p, _ := packingOf(name); p.read {
		return p.what
	}
	return ""
}

// checkPacking refuses a file whose packed bytes would be taken for records, and an empty
// file that is packed by its name, on which Hadoop's maps fail too. Whole files may be
// archives.
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
