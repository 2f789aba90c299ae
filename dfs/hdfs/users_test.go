package hdfs

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// TestShareOwner: a directory of another user is not shared, even if it has the permissions already.
func TestShareOwner(t *testing.T) {
	for _, owner := range []string{"u", "eve"} {
		f, _ := newFakeHDFS(t, &fakeHDFS{owner: owner}, nil)
		err := f.Share("hdfs://nn/quern/users", 0o1777)
		if owner == "u" && err != nil || owner == "eve" && (!errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "belongs to eve")) {
			t.Errorf("a directory of %s: %v", owner, err)
		}
	}
}
