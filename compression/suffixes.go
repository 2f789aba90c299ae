package compression

import (
	"path"
	"strings"
)

// Foreign is a format of compressed files or archives that this package does not read.
type Foreign struct {
	Content string // for messages: XZ data
	Archive bool   // it has several files
}

// foreign has formats by suffix, in lower case.
var foreign = map[string]Foreign{
	".br":          {Content: "Brotli data"},
	".bz":          {Content: "bzip data"},
	".gzip":        {Content: "gzip data, but not named .gz"},
	".lz":          {Content: "lzip data"},
	".lzma":        {Content: "LZMA data"},
	".lzo":         {Content: "LZO data"},
	".lzo_deflate": {Content: "LZO data"},
	".sz":          {Content: "Snappy data in frames"},
	".xz":          {Content: "XZ data"},
	".z":           {Content: "data of compress or pack"},
	".zstd":        {Content: "zstd data, but not named .zst"},

	".7z":   {Content: "a 7z archive", Archive: true},
	".rar":  {Content: "a RAR archive", Archive: true},
	".tar":  {Content: "a tar archive", Archive: true},
	".tbz":  {Content: "a packed tar archive", Archive: true},
	".tbz2": {Content: "a packed tar archive", Archive: true},
	".tgz":  {Content: "a packed tar archive", Archive: true},
	".txz":  {Content: "a packed tar archive", Archive: true},
	".tzst": {Content: "a packed tar archive", Archive: true},
	".zip":  {Content: "a zip archive", Archive: true},
}

// ForeignFile returns the foreign format of a file by its name's suffix, in any case.
func ForeignFile(name string) (f Foreign, ok bool) {
	f, ok = foreign[strings.ToLower(path.Ext(name))]
	return f, ok
}
