package runtime

import (
	"cmp"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// TestGlobs compares matches with Hadoop's, which `make compat` records in
// testdata/globs.txt.
func TestGlobs(t *testing.T) {
	f := mem.New(1 << 20)
	cases := 0
	for line := range strings.Lines(string(must(os.ReadFile("testdata/globs.txt")))) {
		line = strings.TrimSuffix(line, "\n")
		plant(t, f, line)
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

// plant makes the files or empty directories of a line "files PATH..." or "empty PATH...".
func plant(t *testing.T, f *mem.FS, line string) {
	t.Helper()
	kind, names, _ := strings.Cut(line, " ")
	for _, name := range strings.Fields(names) {
		switch kind {
		case "files":
			putFile(f, "mem://t"+name, []byte("x\n"))
		case "empty":
			if err := f.MkdirAll("mem://t" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestInputsOfHadoop compares the files that jobs read with Hadoop's. The file explains its lines.
func TestInputsOfHadoop(t *testing.T) {
	f := mem.New(1 << 20)
	compared := 0
	for line := range strings.Lines(string(must(os.ReadFile("testdata/inputs.txt")))) {
		line = strings.TrimSuffix(line, "\n")
		plant(t, f, line)
		question, want, ok := strings.Cut(line, " = ")
		if !ok || question[0] != '/' {
			continue
		}
		if _, own, differs := strings.Cut(want, " ! "); differs {
			want = own
		}
		path, how, _ := strings.Cut(question, " ")
		s, in := splitSettings(math.MaxInt64), wire.InputPlan{Format: formatLines, Paths: []string{"mem://t" + path}}
		s.recursive = how == "recursive"
		files, err := inputFiles(f, &in, formatOf(&in), s)
		if err == nil {
			err = checkReadable(f, files)
		}
		var names []string
		for _, info := range files {
			names = append(names, strings.TrimPrefix(info.Name, "mem://t"))
		}
		slices.Sort(names)
		got := cmp.Or(strings.Join(names, " "), "none")
		if err != nil {
			got = "error"
		}
		if compared++; got != want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", question, got, err, want)
		}
	}
	if compared < 26 {
		t.Errorf("compared %d inputs", compared)
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
