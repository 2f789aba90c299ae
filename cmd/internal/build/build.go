// Package build tells what a command was built from, for its -version.
//
// Where the source is a module's, or a checkout that Go could ask, Go writes that
// into the program. Where it could not, as with -buildvcs=false, the linker may be
// told:
//
//	go build -ldflags "-X github.com/quernmr/quern/cmd/internal/build.revision=$(git rev-parse HEAD)"
package build

import (
	"runtime/debug"
	"strings"
)

// Set by the linker, or empty.
var version, revision string

// Version is the version and the revision of the source, as far as they are known:
// "v0.3.0 (5f2660f8e5c1)".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return describe(version, revision, info)
}

const devel = "(devel)"

// shortRevision is enough of a revision to find it.
const shortRevision = 12

func describe(version, revision string, info *debug.BuildInfo) string {
	if version == "" {
		version = info.Main.Version
	}
	if version == "" {
		version = devel
	}
	modified := ""
	if revision == "" {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = ", modified"
			}
		}
	}
	revision = revision[:min(len(revision), shortRevision)]
	if revision == "" || strings.Contains(version, revision) {
		return version
	}
	return version + " (" + revision + modified + ")"
}
