package main

import (
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestSections: names of sections are unique, and the Makefile and the pages use existing ones.
func TestSections(t *testing.T) {
	known := make(map[string]bool)
	for _, s := range sections() {
		if known[s.Name] {
			t.Errorf("two sections are named %s", s.Name)
		}
		known[s.Name] = true
		if err := run(t.Context(), []string{s.Name, "-h"}); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s -h: %v", s.Name, err)
		}
		if err := run(t.Context(), []string{s.Name, "-only", "no such part"}); err == nil || !strings.Contains(err.Error(), s.Name+": -only no such part") {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	for _, file := range []string{"../Makefile", "../CONTRIBUTING.md", "../docs/benchmarks.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`go run \./bench(/?) ?(\S*)`).FindAllStringSubmatch(string(text), -1) {
			if found[1] != "" || !known[found[2]] && found[2] != "SECTION" {
				t.Errorf("%s: %q names no section", file, found[0])
			}
		}
	}
}

func TestNoSection(t *testing.T) {
	for _, args := range [][]string{nil, {"-runs", "3"}, {"network"}} {
		if err := run(t.Context(), args); err == nil || !strings.Contains(err.Error(), "machine") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
