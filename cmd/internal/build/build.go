// Package build returns the version and revision of a command's source, for -version.
//
// Go writes the version of a module or checkout into the program. If it cannot, as with
// -buildvcs=false, give the revision to the linker:
//
//	go build -ldflags "-X github.com/quernmr/quern/cmd/internal/build.revision=$(git rev-parse HEAD)"
package build

import (
	"runtime/debug"
	"strings"
)

// Set by the linker, or empty.
var version, revision string

// Version returns the version and revision of the source, if they are known: "v0.3.0
// (5f2660f8e5c1)".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return describe(version, revision, info)
}

const devel = "(devel)"

// shortRevision is how many characters of a revision are shown.
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
