package lint

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOtherSystems: what authors of jobs import, and its tests, would compile for macOS and Windows. Types are checked
// from the source, without the bodies of functions outside of this module, which takes 8 s of processor time. go vet with
// GOOS first compiles the standard library for that system: with an empty build cache it had not finished darwin after 87 s
// of processor time.
func TestOtherSystems(t *testing.T) {
	for _, system := range [][2]string{{"darwin", "arm64"}, {"windows", "amd64"}} {
		t.Run(system[0], func(t *testing.T) {
			s := &systemCheck{t: t, arch: system[1], checked: map[string]*types.Package{"unsafe": types.Unsafe}}
			cmd := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,Module,ImportMap", "./mapreduce/...", "./formats/...")
			cmd.Dir = "../.."
			cmd.Env = append(os.Environ(), "GOOS="+system[0], "GOARCH="+system[1], "CGO_ENABLED=0")
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			s.checkAll(json.NewDecoder(strings.NewReader(string(out))))
		})
	}
}

type systemCheck struct {
	t       *testing.T
	arch    string
	files   token.FileSet
	checked map[string]*types.Package // by import path
}

// listedPackage is a package as go list prints it, after those that it imports.
type listedPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Module     *struct{ Main bool }
	ImportMap  map[string]string
}

func (s *systemCheck) checkAll(list *json.Decoder) {
	own := 0
	for {
		var p listedPackage
		err := list.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		if s.check(&p); p.Module != nil && p.Module.Main {
			own++
		}
	}
	if own < 20 {
		s.t.Errorf("%d packages of this module were checked, want 20 or more", own)
	}
}

func (s *systemCheck) check(p *listedPackage) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		f, err := parser.ParseFile(&s.files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			s.t.Fatal(err)
		}
		files = append(files, f)
	}
	path, _, _ := strings.Cut(p.ImportPath, " ") // without the test that it is for
	config := types.Config{
		Importer:         importerFunc(func(name string) (*types.Package, error) { return s.imported(p, name) }),
		Sizes:            types.SizesFor("gc", s.arch),
		IgnoreFuncBodies: p.Module == nil || !p.Module.Main,
		Error:            func(err error) { s.t.Error(err) },
	}
	s.checked[p.ImportPath], _ = config.Check(path, &s.files, files, nil)
}

func (s *systemCheck) imported(by *listedPackage, name string) (*types.Package, error) {
	if mapped := by.ImportMap[name]; mapped != "" {
		name = mapped
	}
	if p := s.checked[name]; p != nil {
		return p, nil
	}
	return nil, errors.New("go list did not list " + name)
}

type importerFunc func(name string) (*types.Package, error)

func (f importerFunc) Import(name string) (*types.Package, error) { return f(name) }
