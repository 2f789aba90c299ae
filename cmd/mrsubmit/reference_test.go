package main

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/internal/docs"
)

// TestReference: docs/reference.md has exactly the commands and their flags.
func TestReference(t *testing.T) {
	content, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	section := docs.Section(page, "## mrsubmit")
	own := make(map[string]string) // flags in each command's row of the table
	row := regexp.MustCompile("(?m)^\\| `mrsubmit ((?:cluster )?[a-z-]+)[^|]*\\|[^|]*\\| ?(.*)$")
	for _, match := range row.FindAllStringSubmatch(section, -1) {
		own[match[1]] = "| " + match[2] + "\n"
	}
	var want []string
	for _, c := range append(commands(), clusterCommands()...) {
		want = append(want, c.name)
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(own)); !slices.Equal(got, want) {
		t.Errorf("docs/reference.md has the commands %q, want %q", got, want)
	}
	common := section // its only table of flags
	for _, name := range want {
		var help, messages bytes.Buffer
		tool := &tool{stdout: &help, stderr: &messages, getenv: func(string) string { return "" }}
		if code := tool.main(t.Context(), append(strings.Fields(name), "-h")); code != exitDone {
			t.Errorf("mrsubmit %s -h: exit code %d, %s", name, code, &messages)
		}
		flags := own[name]
		switch name {
		case "run":
			flags += docs.Section(page, "### mrsubmit run")
		case "streaming":
			flags = docs.Section(page, "### mrsubmit run")
		case "fs":
			flags = docs.Section(page, "### mrsubmit fs")
		case "cluster certs", "completion": // they need no job tracker
		default:
			flags += common
		}
		for _, difference := range docs.FlagsDiffer(flags, help.String()) {
			t.Errorf("docs/reference.md: mrsubmit %s: %s", name, difference)
		}
	}
}
