package core

import (
	"fmt"
	"path"
	"strings"

	"github.com/quernmr/quern/wire"
)

// rootOf returns the staging directory and the cluster of <staging>/clusters/<cluster>,
// the file that proves that the directory is shared.
func rootOf(file string) (staging, cluster string, ok bool) {
	dir := file[:max(strings.LastIndexByte(file, '/'), 0)]
	staging, ok = strings.CutSuffix(dir, "/"+wire.StagingClusters)
	return staging, path.Base(file), ok && clean(file) && clean(staging)
}

// clean reports whether a URL is as dfs.Clean returns it.
func clean(url string) bool {
	scheme, rest, _ := strings.Cut(url, "://")
	authority, name, _ := strings.Cut(rest, "/")
	return scheme != "" && scheme+"://"+authority+path.Clean("/"+name) == url
}

// Within reports whether a URL is below a directory, given as a cleaned URL.
func Within(dir, url string) bool { return clean(url) && strings.HasPrefix(url, dir+"/") }

// outsideReason says why a submission is refused; empty: it is in the staging directory.
func (c *Core) outsideReason(submission string) string {
	switch {
	case c.cfg.Embedded, c.staging != "" && Within(c.staging, submission):
		return ""
	case c.staging == "":
		return fmt.Sprintf("task tracker %s knows no staging directory yet, and reads nothing elsewhere: %s", c.cfg.Tracker, submission)
	}
	return fmt.Sprintf("%s is not in the staging directory %s, and task tracker %s reads nothing elsewhere", submission, c.staging, c.cfg.Tracker)
}
