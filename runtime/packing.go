package runtime

import (
	"fmt"
	"path"
	"strings"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/dfs"
)

// checkPacking refuses a file if its compressed bytes would be read as records. It also
// refuses an empty file with a compressed format's name: Hadoop's maps fail on most of them too.
// Archives may be read as whole files.
func checkPacking(file dfs.Info, whole bool) error {
	name := file.Name
	codec := compression.OfFile(name)
	foreign, isForeign := compression.ForeignFile(name)
	text := foreign.Content
	if codec != nil {
		if text = codec.Content; !whole {
			if inner := contentByName(strings.TrimSuffix(name, path.Ext(name))); inner != "" {
				text, isForeign = inner+" within "+text, true
			}
		}
	}
	switch {
	case isForeign && !(foreign.Archive && whole):
		return fmt.Errorf("%w: %s is %s by its name, which cannot be read; unpack it, or compress the content with gzip (.gz) or zstd (.zst); if the name is misleading, rename it",
			ErrInput, name, text)
	case codec != nil && file.Size == 0:
		return fmt.Errorf("%w: %s is empty, but by its name it is %s, which is never empty; remove the file or write it again",
			ErrInput, name, text)
	}
	return nil
}

// contentByName describes a compressed or archived content by a file's suffix.
func contentByName(name string) string {
	if codec := compression.OfFile(name); codec != nil {
		return codec.Content
	}
	foreign, _ := compression.ForeignFile(name)
	return foreign.Content
}
