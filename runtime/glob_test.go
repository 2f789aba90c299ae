package runtime

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
)

// TestGlobs compares matches with Hadoop's, which `make compat` records in
// testdata/globs.txt.
func TestGlobs(t *testing.T) {
	f := mem.New(1 << 20)
	cases := 0
	for line := range strings.Lines(string(must(os.ReadFile("testdata/globs.txt")))) {
		line = strings.TrimSuffix(line, "\n")
		if names, ok := strings.CutPrefix(line, "files "); ok {
			for _, name := range strings.Fields(names) {
				putFile(f, "mem://t"+name, []byte("x\n"))
			}
			continue
		}
		if name, ok := strings.CutPrefix(line, "empty "); ok {
			if err := f.MkdirAll("mem://t" + name); err != nil {
				t.Fatal(err)
			}
			continue
		}
		pattern, want, ok := strings.Cut(line, " = ")
		if !ok || pattern[0] != '/' {
			continue
		}
		cases++
		want, refused, _ := strings.Cut(want, " ! ")
		if _, own, ok := strings.Cut(want, " + "); ok {
			want = own
		}
		found, err := matches(f, must(dfs.Clean("mem://t"+pattern)))
		if refused != "" || want == "none" || want == "error" {
			if err == nil || !strings.Contains(err.Error(), refused) {
				t.Errorf("%s: found %v, %v; want an error: %s", pattern, found, err, refused)
			}
			continue
		}
		var got []string
		for _, info := range found {
			got = append(got, strings.TrimPrefix(info.Name, "mem://t"))
		}
		if wanted := strings.Fields(want); err != nil || !slices.Equal(got, wanted) {
			t.Errorf("%s: found %q, %v; Hadoop %q", pattern, got, err, wanted)
		}
	}
	if cases < 100 {
		t.Errorf("%d cases: testdata/globs.txt is cut short", cases)
	}
}

// TestGlobAmbiguous checks that a path is refused if it is a file's name and, as a pattern,
// matches other files.
func TestGlobAmbiguous(t *testing.T) {
	f := mem.New(1 << 20)
	putFile(f, "mem://t/a[1]", []byte("x\n"))
	found, err := matches(f, "mem://t/a[1]")
	if err != nil || len(found) != 1 || found[0].Name != "mem://t/a[1]" {
		t.Errorf("a name that matches only itself as a pattern: %v, %v", found, err)
	}
	putFile(f, "mem://t/a1", []byte("y\n"))
	if _, err := matches(f, "mem://t/a[1]"); err == nil || !isFatal(inputError(err)) || strings.Count(err.Error(), "mem://t/a[1]") != 1 {
		t.Errorf("a name that is a pattern for another: %v", err)
	}
	if found, err := matches(f, `mem://t/a\[1\]`); err != nil || len(found) != 1 || found[0].Name != "mem://t/a[1]" {
		t.Errorf("escaped: %v, %v", found, err)
	}
}

// TestGlobBytes checks names that are not UTF-8.
func TestGlobBytes(t *testing.T) {
	f := mem.New(1 << 20)
	putFile(f, "mem://t/caf\xe9/\xff1", []byte("x\n"))
	found, err := matches(f, "mem://t/caf\xe9/?[1]")
	if err != nil || len(found) != 1 || found[0].Name != "mem://t/caf\xe9/\xff1" {
		t.Errorf("%v, %v", found, err)
	}
}
