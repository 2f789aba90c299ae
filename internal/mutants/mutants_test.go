package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMutantsApply checks that the code still has the place of each mutant, that the changed
// package compiles, and that the packages of its tests exist.
func TestMutantsApply(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	mutants, err := readAll(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) < 25 {
		t.Errorf("there are %d mutants, want at least 25", len(mutants))
	}
	packages := make(map[string][]*mutant) // by the files' directories
	for _, m := range mutants {
		if _, err := m.apply(root); err != nil {
			t.Error(err)
			continue
		}
		in := make(map[string]bool)
		for _, c := range m.changes {
			in[path.Dir(c.file)] = true
		}
		for dir := range in {
			packages[dir] = append(packages[dir], m)
		}
		for _, test := range m.tests {
			if stat, err := os.Stat(filepath.Join(root, test[0])); err != nil || !stat.IsDir() {
				t.Errorf("%s: mutant %s: %s is no package", m.at, m.name, test[0])
			}
		}
	}
	c := newChecker(t, root, packages)
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		for rest := packages[dir]; len(rest) > 0; {
			// Most mutants of a package do not meet. All of these together compile in the time of one.
			var group, left []*mutant
			changed := make(map[string]string)
			for _, m := range rest {
				if m.applyTo(root, changed) == nil {
					group = append(group, m)
				} else {
					left = append(left, m)
				}
			}
			rest = left
			if c.check(dir, changed) == nil {
				continue
			}
			for _, m := range group {
				changed, err := m.apply(root)
				if err == nil {
					err = c.check(dir, changed)
				}
				if err != nil {
					t.Errorf("%s: mutant %s does not compile: %v", m.at, m.name, err)
				}
			}
		}
	}
}

// checker checks the types of packages with changed files.
type checker struct {
	root     string
	set      *token.FileSet
	packages map[string]*listed // by directory within the module
	importer types.Importer
	parsed   map[string]*ast.File // unchanged files
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

func newChecker(t *testing.T, root string, packages map[string][]*mutant) *checker {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for dir := range packages {
		args = append(args, "./"+dir)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	c := &checker{root: root, set: token.NewFileSet(), packages: make(map[string]*listed), parsed: make(map[string]*ast.File)}
	exports := make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		exports[p.ImportPath] = p.Export
		c.packages[inModule(p.ImportPath)] = p
	}
	c.importer = importer.ForCompiler(c.set, "gc", func(importPath string) (io.ReadCloser, error) { return os.Open(exports[importPath]) })
	return c
}

// check checks a package with changed files, without the packages that import it.
func (c *checker) check(dir string, changed map[string]string) error {
	p := c.packages[dir]
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := c.parse(filepath.Join(p.Dir, name), changed[path.Join(dir, name)])
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	config := types.Config{Importer: c.importer}
	_, err := config.Check(p.ImportPath, c.set, files, nil)
	return err
}

func (c *checker) parse(file, changed string) (*ast.File, error) {
	if changed != "" {
		return parser.ParseFile(c.set, file, changed, parser.SkipObjectResolution)
	}
	if c.parsed[file] == nil {
		f, err := parser.ParseFile(c.set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.parsed[file] = f
	}
	return c.parsed[file], nil
}

func TestParse(t *testing.T) {
	text := `
# A comment.
mutant a: does harm
file x/y.go
 	if ok {
-		return
+		panic("a")
test x -run 'TestA|TestB'
test y
`
	all, err := parse("core.txt", text)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d mutants: %v", len(all), err)
	}
	m := all[0]
	if got, want := fmt.Sprint(*m), "{a does harm [{x/y.go [\tif ok { \t\treturn] [\tif ok { \t\tpanic(\"a\")]}] [[x -run 'TestA|TestB'] [y]] core.txt:3}"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for bad, want := range map[string]string{
		"mutant a":                          "core.txt:1: ",
		"file x.go\n":                       "before the first mutant",
		"mutant a: b\nfile x.go\n-y\n":      "needs a file and a test",
		"mutant a: b\n-y\ntest x\n":         "cannot read \"-y\"",
		"mutant a: b\nfile x.go\nwhat else": "core.txt:3: cannot read \"what else\"",
	} {
		if _, err := parse("core.txt", bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", bad, err, want)
		}
	}
}

func TestReplace(t *testing.T) {
	text := "a {\n\tb\n\tc\n}\nb\n"
	for _, c := range []struct {
		old  []string
		want string
		n    int
	}{
		{[]string{"  b", "c"}, "a {\nnew\n}\nb\n", 1},
		{[]string{"b"}, "", 2},
		{[]string{"c", "b"}, "", 0},
		{nil, "", 0},
	} {
		if got, n := replace(text, c.old, []string{"new"}); n != c.n || n == 1 && got != c.want {
			t.Errorf("%q occurs %d times, which gives %q", c.old, n, got)
		}
	}
}

// TestReadEvents reads what go test -json has printed for each result.
func TestReadEvents(t *testing.T) {
	const p = `"Package":"github.com/quernmr/quern/x"`
	for what, c := range map[string]struct{ printed, want string }{
		"all pass":     {`{"Action":"run",` + p + `,"Test":"TestA"}` + "\n" + `{"Action":"pass",` + p + `,"Test":"TestA"}`, " false false <nil>"},
		"no tests":     {`{"Action":"pass",` + p + `}`, " false true <nil>"},
		"one fails":    {`{"Action":"run",` + p + `}` + "\n" + `{"Action":"fail",` + p + `,"Test":"TestA/b"}` + "\n" + `{"Action":"fail",` + p + `,"Test":"TestA"}`, "x.TestA/b false false <nil>"},
		"package only": {`{"Action":"run",` + p + `}` + "\n" + `{"Action":"fail",` + p + `}`, "x false false <nil>"},
		"timeout": {`{"Action":"run",` + p + `}` + "\n" + `{"Action":"output",` + p + `,"Output":"panic: test timed out after 1s\n"}` + "\n" +
			`{"Action":"fail",` + p + `,"Test":"TestA"}`, "x.TestA true false <nil>"},
		"build": {`{"ImportPath":"x","Action":"build-output","Output":"x.go:1:2: undefined: y\n"}` + "\n" + `{"ImportPath":"x","Action":"build-fail"}`,
			" false true does not build: x.go:1:2: undefined: y"},
	} {
		r := readEvents([]byte(c.printed))
		if got := fmt.Sprint(r.failed, " ", r.late, " ", r.none, " ", r.err); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}
