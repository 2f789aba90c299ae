package dfs

import (
	"errors"
	"io/fs"
	"testing"
)

func TestParseUmask(t *testing.T) {
	for text, want := range map[string]uint32{
		"022": 0o755, "22": 0o755, "0022": 0o755, " 077 ": 0o700, "0": 0o777, "000": 0o777, "007": 0o770, "026": 0o751,
		"u=rwx,g=rx,o=rx": 0o755, "u=rwx,g=rx,o=": 0o750, "u=rwx": 0o700, "a=rwx,o=": 0o770, "ug=rwx,o=x": 0o771, "u=xwr,go=r": 0o744,
		"": 0, "8": 0, "1000": 0, "-22": 0, "0o22": 0, "u=rw": 0, "200": 0, "777": 0, "g=rwx": 0, "u+rwx": 0, "u=rwx,": 0, "u=rwx,b=r": 0,
		"=rwx": 0, "u=rwt": 0, "u=rwx,ub=r": 0, "u=r=w": 0, "77777777777777777777777": 0,
	} {
		got, err := ParseUmask(text)
		if got != want || (err == nil) != (want != 0) || err != nil && !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %o, %v, want %o", text, got, err, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, " 12 ": 12, "1k": 1024, "128m": 128 << 20, "1G": 1 << 30, "1024t": 1 << 50,
		"": -1, "m": -1, "-1": -1, "1.5g": -1, "1025t": -1, "1p": -1, "1kb": -1, "9223372036854775807": -1,
	} {
		if got, err := ParseSize(text); err != nil && want >= 0 || err == nil && got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

// TestCleanOn: paths without a scheme are on the default file system, and all URLs where they were.
func TestCleanOn(t *testing.T) {
	t.Chdir("/")
	for _, c := range []struct{ defaultFS, name, want string }{
		{"", "/a", "file:///a"},
		{"", "a", "file:///a"},
		{"file:///", "/a", "file:///a"},
		{"file:///.", "a", "file:///a"},
		{"file:/", "/a", "file:///a"},
		{"hdfs://nn:8020", "/a//b/../c", "hdfs://nn:8020/a/c"},
		{"hdfs://nn:8020/", "/", "hdfs://nn:8020/"},
		{"hdfs:///", "/a*", "hdfs:///a*"},
		{"hdfs://nn", "file:/a", "file:///a"},
		{"hdfs://nn", "hdfs://other/a", "hdfs://other/a"},
		{"hdfs://nn", "//a", "hdfs://nn/a"},
		{"hdfs://nn", "a", ""},
		{"hdfs://nn", "./a", ""},
		{"hdfs://nn/dir", "/a", ""},
		{"nn:8020", "/a", ""},
		{"/dir", "/a", ""},
		{"hdfs://nn", "", ""},
	} {
		defaultFS, err := CleanDefault(c.defaultFS)
		got := ""
		if err == nil {
			got, err = CleanOn(defaultFS, c.name)
		}
		if got != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s on %q: %q, %v, want %q", c.name, c.defaultFS, got, err, c.want)
		}
	}
}
