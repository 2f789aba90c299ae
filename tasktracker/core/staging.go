package core

import (
	"fmt"
	"path"
	"strings"

	"github.com/quernmr/quern/wire"
)

// parseNonceFile splits the URL of a nonce file, <staging>/clusters/<cluster>.
func parseNonceFile(file string) (staging, cluster string, ok bool) {
	dir := file[:max(strings.LastIndexByte(file, '/'), 0)]
	staging, ok = strings.CutSuffix(dir, "/"+wire.StagingClusters)
	return staging, path.Base(file), ok && isClean(file) && isClean(staging)
}

// isClean reports whether a URL has the form that dfs.Clean returns.
func isClean(url string) bool {
	scheme, rest, _ := strings.Cut(url, "://")
	authority, name, _ := strings.Cut(rest, "/")
	return scheme != "" && scheme+"://"+authority+path.Clean("/"+name) == url
}

// Within reports whether a URL is below a directory, given as a cleaned URL.
func Within(dir, url string) bool { return isClean(url) && strings.HasPrefix(url, dir+"/") }

// outsideReason returns the reason to refuse a submission; empty: it is in the staging directory.
func (c *Core) outsideReason(submission string) string {
	switch {
	case c.cfg.Embedded, c.staging != "" && Within(c.staging, submission):
		return ""
	case c.staging == "":
		return fmt.Sprintf("task tracker %s has no staging directory yet, so it cannot read submission %s", c.cfg.Tracker, submission)
	}
	return fmt.Sprintf("submission %s is not in the staging directory %s of task tracker %s", submission, c.staging, c.cfg.Tracker)
}
