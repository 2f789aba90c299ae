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

// TestMessages: the code has each message that a page explains in a table.
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
	notInCode := []string{ // from the system or HDFS, or composed of several texts
		"connection refused", "permission denied: user=ann, access=WRITE",
		"task tracker registered", "task tracker restarted", "OTHER_LOCAL_MAPS",
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
					if !slices.Contains(notInCode, message[1]) && !strings.Contains(code.String(), message[1]) {
						t.Errorf("%s explains the message %q, which no code prints", page, message[1])
					}
				}
			}
		}
	}
	if found < 35 {
		t.Errorf("%d messages were found", found)
	}
}

// TestCommands: commands and flags in the text and examples of pages exist.
func TestCommands(t *testing.T) {
	reference := text(t, "../../docs/reference.md")
	section := Section(reference, "## mrsubmit")
	flags := map[string]map[string]bool{"mrsubmit": {"version": true, "h": true}, "jobtracker": {}, "tasktracker": {}}
	for _, name := range documentedFlag.FindAllStringSubmatch(section+Section(reference, "### mrsubmit run")+Section(reference, "### mrsubmit fs"), -1) {
		flags["mrsubmit"][name[1]] = true
	}
	for _, daemon := range []string{"jobtracker", "tasktracker"} {
		for name := range Flags(Section(reference, "### Flags of both") + Section(reference, "### "+daemon)) {
			flags[daemon][name] = true
		}
	}
	ofStreaming := Flags(Section(text(t, "../../docs/streaming.md"), "## Options")) // Hadoop's options
	quoted := regexp.MustCompile("'[^']*'")
	command := regexp.MustCompile(`(?m)^ *(?:\$ )?(?:[A-Z_]+=\S* )*(?:bin/|go run \./cmd/)?(mrsubmit|jobtracker|tasktracker) (\S*[^:\s](?: .*)?)$`)
	indented := regexp.MustCompile("(?ms)^ *```.*?^ *```")
	subcommand := regexp.MustCompile("^[a-z]+$")
	inText := regexp.MustCompile("`(mrsubmit|jobtracker|tasktracker) ([^`]*)`")
	found := 0
	for _, page := range pagesBelow(t, "../../docs") {
		matches := inText.FindAllStringSubmatch(indented.ReplaceAllString(text(t, page), ""), -1)
		for _, example := range indented.FindAllString(text(t, page), -1) {
			matches = append(matches, command.FindAllStringSubmatch(strings.ReplaceAll(example, "\\\n", " "), -1)...)
		}
		for _, match := range matches {
			found++
			program, args := match[1], strings.Fields(quoted.ReplaceAllString(match[2], "quoted"))
			name := args[0]
			if name == "cluster" && len(args) > 1 && subcommand.MatchString(args[1]) {
				name += " " + args[1]
			}
			if program == "mrsubmit" && name != "help" && subcommand.MatchString(args[0]) && !strings.Contains(section, "| `mrsubmit "+name) {
				t.Errorf("%s: mrsubmit %s is not in reference.md", page, name)
			}
			for i, arg := range args {
				if arg == "#" || program == "mrsubmit" && name == "run" && i > 0 && strings.Contains(arg, "/") {
					break // a comment, or the job: what follows are its own flags
				}
				flag, ok := strings.CutPrefix(arg, "-")
				if _, known := ofStreaming[flag]; known && name == "streaming" {
					continue
				}
				if ok && !flags[program][flag] {
					t.Errorf("%s: %s %s: -%s is not in reference.md", page, program, match[2], flag)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d commands were found", found)
	}
}
