package docs

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestFlagsDiffer(t *testing.T) {
	page := "# Page\n\n### one\n\n| Flag | |\n|---|---|\n| `-a`, `-b` | of -c. Default: `5s` |\n| `-d` | x |\n\n### two\n\n| `-e` | |\n"
	help := "usage\n\n  -a duration\n    \tsilence (default 5s)\n  -b\tlog more\n  -c name\n    \tits name (default \"x\")\n  -d int\n    \tnumber (default 7)\n"
	got := FlagsDiffer(Section(page, "### one"), help)
	if want := []string{"-c is not documented", "-d has the default 7, which is not documented"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := FlagsDiffer(Section(page, "### two"), "\n  -a\n"); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if got := Section(page, "### three"); got != "" {
		t.Errorf("%q", got)
	}
}

// TestMessages: each message that a table of a page explains is in the code.
func TestMessages(t *testing.T) {
	var code strings.Builder
	if err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") {
			code.WriteString(text(t, path))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	elsewhere := []string{ // of the system, of HDFS, or put together of several texts
		"address already in use", "connection refused", "permission denied: user=ann, access=WRITE",
		"task tracker registered", "job submitted", "OTHER_LOCAL_MAPS",
	}
	found := 0
	for _, page := range []string{"running-a-cluster.md", "hdfs.md"} {
		table := false
		for line := range strings.Lines(text(t, "../../docs/"+page)) {
			switch {
			case !strings.HasPrefix(line, "|"):
				table = false
			case strings.HasPrefix(line, "| Message |"), strings.HasPrefix(line, "| Log message |"):
				table = true
			case table:
				first, _, _ := strings.Cut(line[2:], " | ")
				for _, message := range quoted.FindAllStringSubmatch(first, -1) {
					found++
					if !slices.Contains(elsewhere, message[1]) && !strings.Contains(code.String(), message[1]) {
						t.Errorf("%s explains %q, which no code says", page, message[1])
					}
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("%d messages were found", found)
	}
}
