package runtime

import (
	"fmt"
	"path"
	"strings"

	"github.com/quernmr/quern/dfs"
)

// packing is a compression or archive format.
type packing struct {
	description string // for errors
	readable    bool   // this package can decompress it
	archive     bool   // has several files, which a record reader could not separate
}

const (
	gzipped = "gzip data"
	zstded  = "zstd data"
)

// packings has the formats by suffix of a file's name, in lower case.
var packings = map[string]packing{
	".gz":  {description: gzipped, readable: true},
	".zst": {description: zstded, readable: true},

	".br":          {description: "Brotli data"},
	".bz":          {description: "bzip data"},
	".bz2":         {description: "bzip2 data"},
	".deflate":     {description: "zlib data"},
	".gzip":        {description: gzipped},
	".lz":          {description: "lzip data"},
	".lz4":         {description: "LZ4 data"},
	".lzma":        {description: "LZMA data"},
	".lzo":         {description: "LZO data"},
	".lzo_deflate": {description: "LZO data"},
	".snappy":      {description: "Snappy data"},
	".sz":          {description: "Snappy data"},
	".xz":          {description: "XZ data"},
	".z":           {description: "data of compress or pack"},
	".zstd":        {description: zstded},

	".7z":   {description: "a 7z archive", archive: true},
	".rar":  {description: "a RAR archive", archive: true},
	".tar":  {description: "a tar archive", archive: true},
	".tbz":  {description: "a packed tar archive", archive: true},
	".tbz2": {description: "a packed tar archive", archive: true},
	".tgz":  {description: "a packed tar archive", archive: true},
	".txz":  {description: "a packed tar archive", archive: true},
	".tzst": {description: "a packed tar archive", archive: true},
	".zip":  {description: "a zip archive", archive: true},
}

// packingOf looks up the last suffix of a name, in any case.
func packingOf(name string) (p packing, suffix string) {
	suffix = path.Ext(name)
	return packings[strings.ToLower(suffix)], suffix
}

// compressed returns the compression format that this package decompresses, "" for none.
// Output names of jobs have no such suffix.
func compressed(name string) string {
	if p, _ := packingOf(name); p.readable {
		return p.description
	}
	return ""
}

// checkPacking refuses a file if its compressed bytes would be read as records. It also
// refuses an empty file with a compressed format's name: Hadoop's maps fail on it too.
// Archives may be read as whole files.
func checkPacking(file dfs.Info, whole bool) error {
	name := file.Name
	p, suffix := packingOf(name)
	text, readable := p.description, p.readable || p.archive && whole
	if inner, _ := packingOf(strings.TrimSuffix(name, suffix)); p.readable && !whole && inner.description != "" {
		text, readable = inner.description+" within "+p.description, false
	}
	switch {
	case p.readable && readable && file.Size == 0:
		return fmt.Errorf("%w: %s is empty, but by its name it is %s, which is never empty; remove the file or write it again",
			ErrInput, name, text)
	case text == "" || readable:
		return nil
	}
	return fmt.Errorf("%w: %s is %s by its name, which cannot be read; unpack it, or compress the content with gzip (.gz) or zstd (.zst); if the name is misleading, rename it",
		ErrInput, name, text)
}
