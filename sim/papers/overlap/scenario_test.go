package overlap

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestModelScenarios runs testdata/*.txt. Directives:
//
//	run policy=P      the policy's spans and ends for the arrivals given, one a line as in
//	                  "at=0 x=1 y=2"; rates are map, shuffle for each served job
//	ends policy=P     only the ends
//	bound             the lower bound of the sum of response times
//
// Policies are maxsrpt, splitsrpt, strict, srpt, lps=K, order=0-2-1 (at both stations).
func TestModelScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, path, directive)
		})
	}
}

func directive(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	switch d.Cmd {
	case "run", "ends":
		runDirective(t, d, &out)
	case "bound":
		sum, err := modelBound(readArrivals(t, d))
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&out, "%.6g\n", sum)
	default:
		d.Fatalf(t, "unknown directive %s", d.Cmd)
	}
	return out.String()
}

func runDirective(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	arrivals := readArrivals(t, d)
	observe := func(s *modelSpan) {
		fmt.Fprintf(out, "%.6g to %.6g:", s.From, s.To)
		for i, j := range s.Jobs {
			if s.Maps[i] > 0 || s.Shuffles[i] > 0 {
				fmt.Fprintf(out, " %d (%.4g, %.4g)", j.Number, s.Maps[i], s.Shuffles[i])
			}
		}
		fmt.Fprintln(out)
	}
	if d.Cmd == "ends" {
		observe = nil
	}
	ends, err := runModel(readPolicy(t, d), arrivals, observe)
	if err != nil {
		fmt.Fprintln(out, err)
		return
	}
	fmt.Fprint(out, "ends")
	sum := 0.0
	for i, end := range ends {
		fmt.Fprintf(out, " %.6g", end)
		sum += end - arrivals[i].At
	}
	fmt.Fprintf(out, "; responses %.6g\n", sum)
}

func readPolicy(t *testing.T, d *datadriven.TestData) ratesOf {
	var name string
	d.ScanArgs(t, "policy", &name)
	name, arg, _ := strings.Cut(name, "=")
	switch name {
	case "lps":
		k, err := strconv.Atoi(arg)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return modelLPS(k)
	case "order":
		var order []int
		for _, number := range strings.Split(arg, "-") {
			n, err := strconv.Atoi(number)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			order = append(order, n)
		}
		return inOrder(order, order)
	}
	policy, ok := modelPolicies()[name]
	if !ok {
		d.Fatalf(t, "unknown policy %s", name)
	}
	return policy
}

func readArrivals(t *testing.T, d *datadriven.TestData) (arrivals []modelArrival) {
	for line := range strings.Lines(d.Input) {
		sizes := make(map[string]float64)
		for _, word := range strings.Fields(line) {
			key, text, _ := strings.Cut(word, "=")
			size, err := strconv.ParseFloat(text, 64)
			if err != nil {
				d.Fatalf(t, "%q: %v", line, err)
			}
			sizes[key] = size
		}
		arrivals = append(arrivals, modelArrival{At: sizes["at"], Map: sizes["x"], Shuffle: sizes["y"]})
	}
	return arrivals
}
