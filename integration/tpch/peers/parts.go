package peers

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Parts joins the part files below a directory, sorted by name.
func Parts(dir string) (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "part-") {
			return err
		}
		content, err := os.ReadFile(path)
		all.Write(content)
		return err
	})
	return all.String(), err
}
