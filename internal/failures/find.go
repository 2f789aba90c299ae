package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// failure is a test, package or build that failed.
type failure struct {
	title    string
	messages [][]string // the lines of each
}

// The finder keeps group 1 of most.
var (
	running  = regexp.MustCompile(`^=== (?:RUN|CONT|NAME) +(\S+)`)
	ended    = regexp.MustCompile(`^ *--- (?:PASS|SKIP): (\S+)`)
	failed   = regexp.MustCompile(`^ *--- FAIL: (\S+)`)
	position = regexp.MustCompile(`^ *(\S+\.go:\d+: .*)`)             // a test's message
	compiler = regexp.MustCompile(`^(?:vet: )?(\S+\.go:\d+:\d+: .*)`) // an error of the compiler, go vet or staticcheck
	crash    = regexp.MustCompile(`^\s*((?:panic: |fatal error: |WARNING: DATA RACE).*)`)
	result   = regexp.MustCompile(`^(FAIL|ok  |\?   )\t(\S+)(.*)`)
	killed   = regexp.MustCompile(`^\S+: (\S+: signal: .*)`)
	daemon   = regexp.MustCompile(`^\s*(=+$|time=\S+ level=|\d{4}[-/]\d\d[-/]\d\d[ T])`)
)

// finder reads the output of a step line by line.
type finder struct {
	found    []failure
	messages map[string][][]string // of each test
	failed   []string              // tests of this package
	test     string                // the test that prints
	loose    [][]string            // messages of no test
	message  *[]string             // takes the lines that continue a message
	broken   bool                  // a build has failed
}

// find returns the failures in the output of a step, or its last lines.
func find(output string) []failure {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	f := finder{messages: make(map[string][][]string)}
	for _, line := range lines {
		f.read(line)
	}
	f.endPackage("")
	if len(f.found) == 0 {
		return []failure{{"the end of its output", [][]string{lines[max(0, len(lines)-8):]}}}
	}
	return f.found
}

func (f *finder) read(line string) {
	switch {
	case running.MatchString(line):
		f.test, f.message = running.FindStringSubmatch(line)[1], nil
	case ended.MatchString(line):
		f.test, f.message = "", nil
	case failed.MatchString(line):
		f.test, f.message = failed.FindStringSubmatch(line)[1], nil
		f.failed = append(f.failed, f.test)
	case result.MatchString(line):
		parts := result.FindStringSubmatch(line)
		title := ""
		if parts[1] == "FAIL" {
			title = parts[2] + strings.TrimRight(" "+strings.TrimSpace(parts[3]), " ")
		}
		f.endPackage(title)
	case compiler.MatchString(line):
		f.built(compiler.FindStringSubmatch(line)[1])
	case killed.MatchString(line):
		f.built(line)
	case crash.MatchString(line):
		if f.test != "" && !slices.Contains(f.failed, f.test) { // it has not ended
			f.failed = append(f.failed, f.test)
		}
		f.begin(crash.FindStringSubmatch(line)[1])
	case position.MatchString(line):
		f.begin(position.FindStringSubmatch(line)[1])
	case line == "FAIL" || line == "PASS":
		f.message = nil
	case f.message != nil && strings.TrimSpace(line) != "" && !daemon.MatchString(line):
		*f.message = append(*f.message, strings.TrimSpace(line))
	}
}

// built adds an error of a build, which belongs to no package's tests.
func (f *finder) built(line string) {
	f.found, f.message, f.broken = append(f.found, failure{title: line}), nil, true
}

// begin begins a message of the test that prints.
func (f *finder) begin(line string) {
	if daemon.MatchString(line) {
		return
	}
	if f.test == "" {
		f.loose = append(f.loose, []string{line})
		f.message = &f.loose[len(f.loose)-1]
		return
	}
	all := append(f.messages[f.test], []string{line})
	f.messages[f.test] = all
	f.message = &all[len(all)-1]
}

// endPackage adds the failures of a package, which the title names if it failed. Tests with failed
// subtests come last, and only with messages of their own.
func (f *finder) endPackage(title string) {
	name, _, _ := strings.Cut(title, " ")
	name = name[strings.LastIndex(name, "/")+1:]
	before := len(f.found)
	var parents []failure
	for _, test := range f.failed {
		messages := f.messages[test]
		one := failure{strings.TrimLeft(name+" ", " ") + test, messages}
		if !f.parent(test) {
			f.found = append(f.found, one)
		} else if len(messages) > 0 {
			parents = append(parents, one)
		}
	}
	f.found = append(f.found, parents...)
	said := len(f.found) > before || f.broken && strings.HasSuffix(title, "[build failed]")
	if title != "" && (!said || len(f.loose) > 0) {
		f.found = append(f.found, failure{title, f.loose})
	}
	*f = finder{found: f.found, messages: make(map[string][][]string), broken: f.broken}
}

// parent reports whether a subtest has failed.
func (f *finder) parent(test string) bool {
	return slices.ContainsFunc(f.failed, func(other string) bool { return strings.HasPrefix(other, test+"/") })
}

// summary prints the failures in at most limit lines.
func summary(all []failure, limit int) string {
	for _, size := range []struct{ messages, lines int }{{8, 6}, {6, 3}, {3, 3}, {3, 1}, {1, 1}, {0, 0}} {
		var lines []string
		for _, f := range all {
			lines = append(lines, f.text(size.messages, size.lines)...)
		}
		if len(lines) <= limit {
			return strings.Join(append(lines, ""), "\n")
		}
		if size.messages == 0 {
			rest := len(lines) - (limit - 1)
			lines = append(lines[:limit-1], fmt.Sprintf("and %d more failures", rest))
			return strings.Join(append(lines, ""), "\n")
		}
	}
	return ""
}

const width = 240 // of a line

func (f failure) text(messages, lines int) []string {
	all := []string{f.title}
	for _, m := range f.messages[:min(len(f.messages), messages)] {
		for j, line := range m[:min(len(m), lines)] {
			if len(line) > width {
				line = strings.ToValidUTF8(line[:width], "") + "…"
			}
			indent := "    "
			if j > 0 {
				indent += "    "
			}
			all = append(all, indent+line)
		}
	}
	return all
}
