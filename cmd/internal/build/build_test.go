package build

import (
	"runtime/debug"
	"testing"
)

func TestDescribe(t *testing.T) {
	const hash = "5f2660f8e5c1d3b7a90142e6f7081920a1b2c3d4"
	info := func(version string, settings ...string) *debug.BuildInfo {
		i := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for n := 0; n < len(settings); n += 2 {
			i.Settings = append(i.Settings, debug.BuildSetting{Key: settings[n], Value: settings[n+1]})
		}
		return i
	}
	for _, c := range []struct {
		version, revision string
		info              *debug.BuildInfo
		want              string
	}{
		{"", "", info(""), "(devel)"},
		{"", "", info("(devel)", "vcs.revision", hash), "(devel) (5f2660f8e5c1)"},
		{"", "", info("(devel)", "vcs.revision", hash, "vcs.modified", "true"), "(devel) (5f2660f8e5c1, modified)"},
		{"", "", info("v0.0.0-20261121180000-5f2660f8e5c1+dirty", "vcs.revision", hash, "vcs.modified", "true"), "v0.0.0-20261121180000-5f2660f8e5c1+dirty"},
		{"", "", info("v0.3.0"), "v0.3.0"},
		{"v0.3.0", hash, info("(devel)", "vcs.revision", "another"), "v0.3.0 (5f2660f8e5c1)"},
		{"", "5f26", info("(devel)"), "(devel) (5f26)"},
	} {
		if got := describe(c.version, c.revision, c.info); got != c.want {
			t.Errorf("%q %q %+v: %q, want %q", c.version, c.revision, c.info, got, c.want)
		}
	}
	if Version() == "" {
		t.Error("this program has no version")
	}
}
