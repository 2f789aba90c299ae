package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestFuzzTargetsBoundMemory: every fuzz target checks the memory that its decoder takes, itself or in a function that it calls.
func TestFuzzTargetsBoundMemory(t *testing.T) {
	targets := 0
	for _, p := range listed(t) {
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			s := parse(t, p, file)
			bounded := make(map[string]bool) // functions of the file
			for _, decl := range s.file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok {
					text := string(s.text[s.set.Position(f.Pos()).Offset:s.set.Position(f.End()).Offset])
					bounded[f.Name.Name] = strings.Contains(text, "ound.Check(") || strings.Contains(text, "membound.Bound{")
				}
			}
			for _, decl := range s.file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if !ok || !strings.HasPrefix(f.Name.Name, "Fuzz") {
					continue
				}
				targets++
				checks := bounded[f.Name.Name]
				ast.Inspect(f, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						checks = checks || bounded[id.Name]
					}
					return true
				})
				if !checks {
					t.Errorf("%s of %s checks no bound of memory: use package membound", f.Name.Name, s.name)
				}
			}
		}
	}
	if targets < 20 {
		t.Errorf("found %d fuzz targets", targets)
	}
}
