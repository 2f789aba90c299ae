package mapreduce_test

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestWrongTypes: the compiler reports a wrong type on the line with the mistake, and nothing else.
func TestWrongTypes(t *testing.T) {
	const program = "testdata/wrongtypes/main.go"
	source, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []int
	for i, line := range strings.Split(string(source), "\n") {
		if strings.HasSuffix(line, "// WRONG") {
			want = append(want, i+1)
		}
	}
	out, err := exec.Command("go", "build", "-gcflags=-e", "-o", os.DevNull, "./testdata/wrongtypes").CombinedOutput()
	if err == nil {
		t.Fatal("the program compiles")
	}
	for line := range strings.Lines(string(out)) {
		if place, ok := strings.CutPrefix(line, program+":"); ok {
			number, _, _ := strings.Cut(place, ":")
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			got = append(got, n)
		}
	}
	slices.Sort(got)
	if !slices.Equal(slices.Compact(got), want) {
		t.Errorf("errors on lines %v, want %v\n%s", got, want, out)
	}
}
