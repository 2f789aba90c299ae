package testbed

import (
	"fmt"
	"regexp"
	"time"
)

// Section is a part of what a benchmark prints.
type Section struct {
	Name    string
	Measure func() error
}

// Wanted is the sections whose names match an expression, some at least.
func Wanted(only string, all []Section) (wanted []Section, err error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	for _, s := range all {
		if match.MatchString(s.Name) {
			wanted = append(wanted, s)
		}
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("-only %s: no section has such a name", only)
	}
	return wanted, nil
}

// Measure measures sections in turn, with a head and what each took.
func Measure(sections []Section) error {
	for _, s := range sections {
		fmt.Printf("\n## %s\n\n", s.Name)
		began, before := time.Now(), Load()
		if err := s.Measure(); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		fmt.Printf("\nThis section took %v. The machine's load was %s before it and is %s.\n", time.Since(began).Round(time.Second), before, Load())
	}
	return nil
}

// Seeds are the first n of so many seeds from first on, or as many as there are.
func Seeds(first uint64, many, n int) []uint64 {
	var seeds []uint64
	for i := range min(n, many) {
		seeds = append(seeds, first+uint64(i))
	}
	return seeds
}
