package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is a planted fault.
type mutant struct {
	name    string
	reason  string   // what the fault does
	changes []change // in order; several may be in one file
	tests   [][]string
	at      string // file and line of its first line
}

// change replaces lines of a file.
type change struct {
	file     string // path within the module
	old, new []string
}

// moduleRoot returns the directory of the module.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// readAll reads the mutants of all files. No two mutants may have the same name.
func readAll(root string) ([]*mutant, error) {
	files, err := filepath.Glob(filepath.Join(root, "internal/mutants/testdata/*.txt"))
	if err != nil {
		return nil, err
	}
	var all []*mutant
	places := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		mutants, err := parse(filepath.Base(file), string(text))
		if err != nil {
			return nil, err
		}
		for _, m := range mutants {
			if first := places[m.name]; first != "" {
				return nil, fmt.Errorf("%s: mutant %s is also at %s", m.at, m.name, first)
			}
			places[m.name] = m.at
		}
		all = append(all, mutants...)
	}
	return all, nil
}

// parse reads the mutants of a file; the package comment has the format.
func parse(name, text string) ([]*mutant, error) {
	var all []*mutant
	number := 0
	for line := range strings.Lines(text) {
		number++
		at := fmt.Sprintf("%s:%d", name, number)
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		if line == "" || line[0] == '#' {
			continue
		}
		if word == "mutant" {
			name, reason, ok := strings.Cut(rest, ": ")
			if !ok {
				return nil, fmt.Errorf("%s: %q is not mutant NAME: what the fault does", at, line)
			}
			all = append(all, &mutant{name: name, reason: reason, at: at})
			continue
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("%s: %q comes before the first mutant", at, line)
		}
		m := all[len(all)-1]
		switch word {
		case "file":
			m.changes = append(m.changes, change{file: rest})
			continue
		case "test":
			m.tests = append(m.tests, strings.Fields(rest))
			continue
		}
		if !strings.ContainsRune("-+ ", rune(line[0])) || len(m.changes) == 0 {
			return nil, fmt.Errorf("%s: cannot read %q: want a word such as file or test, or, after a file, a line that begins with -, + or a blank", at, line)
		}
		c := &m.changes[len(m.changes)-1]
		if line[0] != '+' {
			c.old = append(c.old, line[1:])
		}
		if line[0] != '-' {
			c.new = append(c.new, line[1:])
		}
	}
	for _, m := range all {
		if len(m.changes) == 0 || len(m.tests) == 0 {
			return nil, fmt.Errorf("%s: mutant %s needs a file and a test", m.at, m.name)
		}
	}
	return all, nil
}

// apply returns the changed files by their paths within the module.
func (m *mutant) apply(root string) (map[string]string, error) {
	changed := make(map[string]string)
	return changed, m.applyTo(root, changed)
}

// applyTo adds the changes to files that other mutants may have changed. After an error, changed
// is as before.
func (m *mutant) applyTo(root string, changed map[string]string) error {
	all := maps.Clone(changed)
	for _, c := range m.changes {
		text, ok := all[c.file]
		if !ok {
			data, err := os.ReadFile(filepath.Join(root, c.file))
			if err != nil {
				return fmt.Errorf("%s: mutant %s: %w", m.at, m.name, err)
			}
			text = string(data)
		}
		after, n := replace(text, c.old, c.new)
		if n != 1 {
			return fmt.Errorf("%s: mutant %s: its old lines occur %d times in %s, want once", m.at, m.name, n, c.file)
		}
		all[c.file] = after
	}
	maps.Copy(changed, all)
	return nil
}

// replace replaces the lines of old, compared without indentation, and counts how often they
// occur.
func replace(text string, old, new []string) (after string, n int) {
	if len(old) == 0 {
		return text, 0
	}
	same := func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }
	lines := strings.Split(text, "\n")
	for i := 0; i+len(old) <= len(lines); i++ {
		if slices.EqualFunc(lines[i:i+len(old)], old, same) {
			after = strings.Join(slices.Concat(lines[:i], new, lines[i+len(old):]), "\n")
			n++
		}
	}
	return after, n
}
