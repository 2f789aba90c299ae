package testbed

import (
	"errors"
	"flag"
	"reflect"
	"strings"
	"testing"
)

func testSection() Section {
	return Section{
		Name: "t", Runs: 3, Seeds: 9, Size: "1M",
		Flags: func(f *flag.FlagSet) { f.Int("lanes", 2, "") },
		Parts: []Part{{Name: "one"}, {Name: "two"}},
	}
}

func TestFlags(t *testing.T) {
	s := testSection()
	b, parts, err := s.parse([]string{"-runs", "5", "-size", "3K", "-seeds", "2", "-seed", "7", "-only", "w"})
	if err != nil {
		t.Fatal(err)
	}
	if b.Runs != 5 || b.Bytes != 3<<10 || !reflect.DeepEqual(b.Seeds(9), []uint64{7, 8}) || len(b.Seeds(1)) != 1 {
		t.Errorf("%+v", b)
	}
	if len(parts) != 1 || parts[0].Name != "two" {
		t.Errorf("%+v", parts)
	}
}

// TestFlagsRefused: bad flags are refused before anything starts.
func TestFlagsRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-runs 0":     "-runs must be positive, got 0",
		"-seeds -1":   "-seeds must be positive, got -1",
		"-lanes 0":    "-lanes must be positive, got 0",
		"-size 1X":    "-size",
		"-only ((":    "-only",
		"-only three": "-only three matches none of: one; two",
		"-cores 2":    "-cores", // only other sections have it
		"-scale 1":    "-scale",
		"more":        `"more" is not a flag`,
	} {
		s := testSection()
		if _, _, err := s.parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// TestRun: cleanups run in reverse order, also after an error.
func TestRun(t *testing.T) {
	broken := errors.New("broken")
	var did []string
	note := func(what string, err error) func() error {
		return func() error {
			did = append(did, what)
			return err
		}
	}
	s := testSection()
	s.Open = func(b *Bench) error {
		b.AtEnd(note("first", nil))
		b.AtEnd(note("last", broken))
		return note("open", nil)()
	}
	s.Parts = []Part{{Name: "one", Measure: note("one", nil)}, {Name: "two", Measure: note("two", errors.New("failed"))}}
	err := s.Run(t.Context(), []string{"-dir", t.TempDir()})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "two: failed") {
		t.Error(err)
	}
	if want := []string{"open", "one", "two", "last", "first"}; !reflect.DeepEqual(did, want) {
		t.Errorf("%v, want %v", did, want)
	}
}

func TestAlternate(t *testing.T) {
	n := 0
	count := func() (int, error) {
		n++
		return n, nil
	}
	got, err := Alternate(1, 2, count, count)
	if want := [][]int{{3, 5}, {4, 6}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
	if _, err := Alternate(0, 1, func() (int, error) { return 0, errors.New("failed") }); err == nil {
		t.Error("an error is lost")
	}
}
