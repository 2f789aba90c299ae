package lint

import (
	"go/ast"
	"regexp"
	"slices"
	"testing"
)

// TestEncodedIsPinned: if a package encodes or decodes, its tests compare golden bytes with
// package internal/golden.
func TestEncodedIsPinned(t *testing.T) {
	allowed := map[string]string{ // by package: why it has no golden bytes
		"cmd/internal/daemon":         "a response of two fields; its tests check their names",
		"avrofile/container":          "schemas of Avro, which its specification pins",
		"cmd/mrsubmit":                "output for scripts; its tests check the names",
		"jobtracker/replica":          "reads a file of raft",
		"mapreduce":                   "parameters of a driver, for processes of the same executable",
		"mapreduce/streaming":         "options of a job, for processes of the same executable",
		"mapreduce/internal/driver":   "sessions, which only the same executable reads",
		"sim":                         "hashes commands and decodes nothing",
		"sim/papers":                  "prints rows for other programs",
		"tasktracker":                 "a response of two fields, as in cmd/internal/daemon",
		"tasktracker/isolation":       "a plan for a process of the same executable",
		"tasktracker/isolation/enter": "the same",
	}
	trees := []string{"bench", "examples", "integration"} // they read no files of other builds
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
		switch reason := allowed[p.path()]; {
		case len(uses) > 0 && !pinned && reason == "" && !within(p.path(), "internal"):
			t.Errorf("%v, but no test of %s has golden bytes: see internal/golden", uses, p.path())
		case reason != "" && (len(uses) == 0 || pinned):
			t.Errorf("%s needs no exception any more: remove it from allowed", p.path())
		}
	}
}

// TestTagsAreWhole: if one field of a struct has a msgpack or json tag, all exported fields
// have one.
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
