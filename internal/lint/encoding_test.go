package lint

import (
	"go/ast"
	"regexp"
	"slices"
	"testing"
)

// TestEncodedIsPinned: what a package encodes or decodes is pinned by golden bytes, which
// package internal/golden compares.
func TestEncodedIsPinned(t *testing.T) {
	allowed := map[string]string{ // package: why it may do without; "": it must not
		"cmd/internal/daemon": "an answer of two fields: its tests have their names",
		"cmd/mrsubmit":        "prints for scripts, and its tests have the names",
		"jobtracker/replica":  "reads a file of raft's",
		"sim":                 "sums of commands, which are compared and never decoded",
		"sim/papers":          "prints rows for other programs",
		"tasktracker":         "an answer of two fields, as in cmd/internal/daemon",
	}
	trees := []string{"bench", "examples", "integration"} // read nothing that another build has written
	encoders := []string{
		module + "/wire.Marshal", module + "/wire.Unmarshal", module + "/wire.UnmarshalKnown",
		"encoding/json.Marshal", "encoding/json.MarshalIndent", "encoding/json.NewEncoder",
		"encoding/json.Unmarshal", "encoding/json.NewDecoder",
		"encoding/gob.NewEncoder", "encoding/gob.NewDecoder",
	}
	for _, p := range listed(t) {
		if slices.ContainsFunc(trees, func(tree string) bool { return within(p.path(), tree) }) {
			continue
		}
		var uses []string
		for _, file := range p.GoFiles {
			uses = append(uses, parse(t, p, file).uses(encoders...)...)
		}
		pinned := slices.Contains(slices.Concat(p.TestImports, p.XTestImports), module+"/internal/golden")
		switch why := allowed[p.path()]; {
		case len(uses) > 0 && !pinned && why == "" && !within(p.path(), "internal"):
			t.Errorf("%v, and no test of %s has golden bytes: see internal/golden", uses, p.path())
		case why != "" && (len(uses) == 0 || pinned):
			t.Errorf("%s needs no allowance any more", p.path())
		}
	}
}

// TestTagsAreWhole: a struct that names one field for an encoding names all of them.
func TestTagsAreWhole(t *testing.T) {
	encoding := regexp.MustCompile(`\b(msgpack|json):"`)
	tagged := func(f *ast.Field) bool { return f.Tag != nil && encoding.MatchString(f.Tag.Value) }
	for _, p := range listed(t) {
		for _, file := range p.GoFiles {
			s := parse(t, p, file)
			ast.Inspect(s.file, func(n ast.Node) bool {
				of, ok := n.(*ast.StructType)
				if !ok || !slices.ContainsFunc(of.Fields.List, tagged) {
					return true
				}
				for _, f := range of.Fields.List {
					for _, name := range f.Names {
						if name.IsExported() && !tagged(f) {
							t.Errorf("%s:%d: field %s has no tag, but others of its struct do", s.name, s.set.Position(f.Pos()).Line, name)
						}
					}
				}
				return true
			})
		}
	}
}
