package runtime

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/wire"
)

// TestLinks checks that symbolic links are followed, and that loops and dangling links are
// refused.
func TestLinks(t *testing.T) {
	f := dfs.Mux{"file": local.New()}
	for name, c := range map[string]struct {
		links   map[string]string // relative to in, which has a/f, b/g and f
		flat    bool              // do not read subdirectories
		path    string
		refused string // path below in that the error names
		files   string
	}{
		"none":               {nil, false, "", "", "a/f b/g f"},
		"to a file":          {map[string]string{"h": "a/f"}, true, "h", "", "h"},
		"to a directory":     {map[string]string{"c": "a"}, false, "", "", "a/f b/g c/f f"},
		"two ways, one file": {map[string]string{"c": "b", "d": "b"}, false, "", "", "a/f b/g c/g d/g f"},
		"path is a link":     {map[string]string{"c": "a"}, false, "c", "", "c/f"},
		"to itself":          {map[string]string{"self": "self"}, false, "self", "self", ""},
		"to itself, within":  {map[string]string{"a/self": "self"}, true, "a", "a/self", ""},
		"to nowhere":         {map[string]string{"a/broken": "nowhere"}, true, "a", "a/broken", ""},
		"to its directory":   {map[string]string{"a/loop": "."}, false, "", "a/loop", ""},
		"to the top":         {map[string]string{"a/loop": ".."}, false, "", "a/loop", ""},
		"above the top":      {map[string]string{"a/loop": ".."}, false, "a", "a/loop/a", ""},
		"two that meet":      {map[string]string{"a/x": "../b", "b/y": "../a"}, false, "", "a/x/y", ""},
		"three in a knot":    {map[string]string{"a/x": "../b", "a/y": "..", "b/z": "../a"}, false, "", "a/x/z", ""},
		"by a glob":          {map[string]string{"a/loop": ".."}, false, "*", "a/loop/a", ""},
		"hidden":             {map[string]string{"a/.loop": "..", "_loop": "."}, false, "", "", "a/f b/g f"},
		"not recursive":      {map[string]string{"a/loop": "."}, true, "a", "a/loop", ""},
	} {
		t.Run(name, func(t *testing.T) {
			top := filepath.Join(t.TempDir(), "in")
			for _, file := range []string{"a/f", "b/g", "f"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(top, file)), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(top, file), []byte("x\n"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			for link, to := range c.links {
				if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
					t.Fatal(err)
				}
			}
			s := splitSettings(math.MaxInt64)
			s.recursive = !c.flat
			in := wire.InputPlan{Format: formatLines, Paths: []string{"file://" + filepath.Join(top, c.path)}}
			files, err := inputFiles(f, &in, formatOf(&in), s)
			if err == nil {
				err = checkReadable(f, files)
			}
			if c.refused != "" {
				if err == nil || !isFatal(err) || strings.Count(err.Error(), top) != 1 || !strings.Contains(err.Error(), top+"/"+c.refused) {
					t.Errorf("%v; want the path %s once", err, c.refused)
				}
				return
			}
			var got []string
			for _, info := range files {
				got = append(got, strings.TrimPrefix(info.Name, "file://"+top+"/"))
			}
			if err != nil || strings.Join(got, " ") != c.files {
				t.Errorf("%q, %v; want %s", got, err, c.files)
			}
		})
	}
}

// TestLongOutputs checks that an output with a name or path too long for a file system is
// refused with a short error. Names beside an accepted output must not be too long either.
func TestLongOutputs(t *testing.T) {
	for output, refused := range map[string]bool{
		"file:///" + strings.Repeat("x", maxName):                  false,
		"file:///" + strings.Repeat("x", maxName+1):                true,
		"file:///" + strings.Repeat("ü", maxName/2+1):              true,
		"hdfs://nn/a/" + strings.Repeat("x", 300) + "/out":         true,
		"file:///" + strings.Repeat("d/", maxOutputPath/2-5) + "x": false,
		"file:///" + strings.Repeat("d/", maxOutputPath/2):         true,
	} {
		err := checkLength(output)
		if refused != (err != nil) || refused && (!isFatal(err) || len(err.Error()) > 250) {
			t.Errorf("%d bytes: %v", len(output), err)
		}
	}
	for _, name := range []string{strings.Repeat("x", maxName), strings.Repeat("ü", maxName/2), strings.Repeat("日", maxName/3)} {
		tree := &tree{out: "file:///d/" + name, job: wire.JobID{Start: math.MaxInt64, N: math.MaxInt32}, key: strings.Repeat("K", 26)}
		for _, suffix := range []string{".new", ".old"} {
			if base := dfs.Base(tree.sibling(suffix)); len(base) > maxName || !utf8.ValidString(base) || !hidden(base) {
				t.Errorf("beside %s: %q has %d bytes", name, base, len(base))
			}
		}
	}
}

// TestBinaryIsNotText: formats of text refuse binary records, whether a path names their directory, files by a pattern,
// or one file. Other formats, and files beside such a directory, are not refused.
func TestBinaryIsNotText(t *testing.T) {
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, "out"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"beside", "out/part-r-00000", "out/part-r-00001", "out/_types"} {
		if err := os.WriteFile(filepath.Join(top, file), []byte("x\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	f := dfs.Mux{"file": local.New()}
	for _, c := range []struct{ format, path, refused string }{
		{"lines", "out", "out"},
		{"lines", "out/part-*", "out/part-r-00000"},
		{"lines", "out/part-r-00001", "out/part-r-00001"},
		{"keyvalues", "o*/part-r-0000{1,2}", "out/part-r-00001"},
		{"text", "out/part-r-00000", "out/part-r-00000"},
		{"nlines", "*/part-*", "out/part-r-00000"},
		{"lines", "*", "out"},
		{"lines", "beside", ""},
		{"lines", "out/_types", ""},
		{"jsonlines", "out/part-*", ""},
	} {
		in := &wire.InputPlan{Format: c.format, Paths: []string{"file://" + top + "/" + c.path}}
		_, err := inputFiles(f, in, formatOf(in), splitSettings(math.MaxInt64))
		if c.refused == "" {
			if err != nil {
				t.Errorf("%s of %s: %v", c.path, c.format, err)
			}
			continue
		}
		if want := "file://" + top + "/" + c.refused + " has binary records, not lines of text"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of %s: %v, want %q", c.path, c.format, err, want)
		}
	}
}
