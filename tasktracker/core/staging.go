package core

import (
	"fmt"
	"path"
	"strings"

	"github.com/quernmr/quern/wire"
)

// rootOf is the staging directory and the cluster of a file that proves that the directory
// is shared, which is clusters/<cluster> there.
func rootOf(file string) (staging, cluster string, ok bool) {
	dir := file[:max(strings.LastIndexByte(file, '/'), 0)]
	staging, ok = strings.CutSuffix(dir, "/"+wire.StagingClusters)
	return staging, path.Base(file), ok && clean(file) && clean(staging)
}

// clean says whether a URL is as dfs.Clean leaves it.
func clean(url string) bool {
	scheme, rest, _ := strings.Cut(url, "://")
	authority, name, _ := strings.Cut(rest, "/")
	return scheme != "" && scheme+"://"+authority+path.Clean("/"+name) == url
}

// Within says whether a URL is of something in a directory, given as a cleaned URL.
func Within(dir, url string) bool { return clean(url) && strings.HasPrefix(url, dir+"/") }

// outside says why a submission is not read; empty: it is in the staging directory.
func (c *Core) outside(submission string) string {
	switch {
	case c.cfg.Embedded, c.staging != "" && Within(c.staging, submission):
		return ""
	case c.staging == "":
		return fmt.Sprintf("task tracker %s knows no staging directory yet, and reads nothing elsewhere: %s", c.cfg.Tracker, submission)
	}
	return fmt.Sprintf("%s is not in the staging directory %s, and task tracker %s reads nothing elsewhere", submission, c.staging, c.cfg.Tracker)
}
