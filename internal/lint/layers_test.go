package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/quernmr/quern"

// layers is the order of packages, from the top down, by their paths in the
// module. X/... is X and all packages below it. A package may import packages of lower
// layers and, in its own layer, packages of the same tree.
func layers() [][]string {
	return [][]string{
		{"integration/...", "bench/...", "internal/docs", "internal/failures", "internal/lint", "internal/mutants"},
		{"examples/...", "integration/processes", "integration/trial", "integration/examples", "integration/hdfs/minicluster", "integration/tpch/peers", "integration/cache"},
		{"formats/..."},
		{"cmd/..."},
		{"mapreduce/..."},
		{"embedded", "gossip", "sim/..."},
		{"jobtracker", "jobtracker/breakdown", "jobtracker/glance", "jobtracker/replica", "jobtracker/pages/...", "jobtracker/web", "tasktracker"},
		{"jobtracker/web/seek", "tasktracker/process"},
		{"tasktracker/account", "tasktracker/account/rights", "tasktracker/attemptlog", "tasktracker/cgroup", "tasktracker/credentials", "tasktracker/disks", "tasktracker/gather", "tasktracker/healthscript", "tasktracker/isolation", "tasktracker/isolation/enter", "tasktracker/program", "tasktracker/token", "tasktracker/workers"},
		{"client"},
		{"jobtracker/core", "tasktracker/core"},
		{"jobtracker/core/admission", "jobtracker/core/handshake"},
		{"jobtracker/core/facts", "jobtracker/core/assign", "jobtracker/core/placement", "jobtracker/core/profiles", "jobtracker/core/quota", "jobtracker/core/shares", "jobtracker/core/announce"},
		{"jobtracker/core/taskset", "jobtracker/core/curve", "jobtracker/core/forecast", "jobtracker/core/faults", "jobtracker/core/past", "jobtracker/core/pastplans", "jobtracker/core/pieces", "jobtracker/core/settings", "jobtracker/core/health", "jobtracker/core/skew", "jobtracker/core/slottime", "jobtracker/core/speculation"},
		{"runtime", "jobfile", "history", "jobtracker/core/census"},
		{"shuffle"},
		{"scheduler/...", "locality", "runtime/search"},
		{"archive", "audit", "groups", "identity", "listen/...", "datadir", "dfs", "dfs/local", "dfs/hdfs", "dfs/hdfs/sasl", "dfs/mem", "dfs/dfstest", "dfs/builtin", "sequencefile/...", "parquetfile", "avrofile/..."},
		{"wire", "compression", "sparselog", "meter", "internal/hadoop", "internal/golden"},
		{"internal/failingfile", "internal/membound", "internal/spelling", "internal/javatext", "internal/shelltable", "internal/hadoopconf"},
	}
}

// pkg is the part of go list's output that the tests need.
type pkg struct {
	ImportPath   string
	Dir          string
	Name         string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string
}

// path returns the package's path within the module.
func (p *pkg) path() string { return inModule(p.ImportPath) }

func inModule(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// packages lists the module's packages, also those that do not compile.
var packages = sync.OnceValues(func() ([]*pkg, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Name,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Deps", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []*pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(pkg)
		switch err := dec.Decode(p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
})

func listed(t *testing.T) []*pkg {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// layerOf returns the layer of the longest entry that matches a package, counted from the
// bottom.
func layerOf(p string) (layer int, ok bool) {
	table, best := layers(), -1
	for i, entries := range table {
		for _, entry := range entries {
			tree, all := strings.CutSuffix(entry, "/...")
			if (p == tree || all && strings.HasPrefix(p, tree+"/")) && len(tree) > best {
				layer, ok, best = len(table)-i, true, len(tree)
			}
		}
	}
	return layer, ok
}

// tree returns the first element of a package's path.
func tree(p string) string {
	first, _, _ := strings.Cut(p, "/")
	return first
}

func TestImportsPointDownwards(t *testing.T) {
	for _, p := range listed(t) {
		from, ok := layerOf(p.path())
		if !ok {
			t.Errorf("package %s is in no layer: enter it in layers()", p.path())
			continue
		}
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, module) {
				continue
			}
			to, _ := layerOf(inModule(imported))
			if to > from || to == from && tree(p.path()) != tree(inModule(imported)) {
				t.Errorf("%s imports %s, which is not below it", p.path(), inModule(imported))
			}
		}
	}
}

// TestOnlyImporters allows each big dependency only in the package that wraps it. Packages
// in bench may use them for comparisons.
func TestOnlyImporters(t *testing.T) {
	only := map[string]string{
		"github.com/hashicorp/raft":       "jobtracker/replica",
		"go.etcd.io/bbolt":                "jobtracker/replica",
		"github.com/hashicorp/memberlist": "gossip",
		"github.com/colinmarc/hdfs":       "dfs/hdfs",
	}
	for _, p := range listed(t) {
		for dependency, owner := range only {
			for _, imported := range p.Imports {
				if within(imported, dependency) && !within(p.path(), owner) && !within(p.path(), "bench") {
					t.Errorf("%s imports %s, which only %s may import", p.path(), imported, owner)
				}
			}
		}
	}
}

// within reports whether a package is in tree, or in a later major version of it.
func within(importPath, tree string) bool {
	return importPath == tree || strings.HasPrefix(importPath, tree+"/")
}

// TestDependencies refuses direct and indirect dependencies of packages on certain trees, or on a package X for X$.
func TestDependencies(t *testing.T) {
	cluster := []string{
		"github.com/hashicorp/raft", "github.com/hashicorp/memberlist", "go.etcd.io/bbolt", "github.com/prometheus", "charm.land", "github.com/charmbracelet",
		module + "/jobtracker/pages", module + "/jobtracker/web", module + "/jobtracker/replica", module + "/gossip", "net/http/httputil", "html/template",
	}
	clusterAndTypes := append([]string{module + "/mapreduce"}, cluster...)
	formats := []string{module + "/formats", module + "/sequencefile", module + "/parquetfile", module + "/avrofile", "github.com/parquet-go", "github.com/twmb/avro"} // programs import them if they use them
	clusterAndFormats := slices.Concat(formats, cluster)
	for name, never := range map[string][]string{
		"mapreduce":          clusterAndFormats,
		"mapreduce/mrtest":   clusterAndFormats,
		"examples/wordcount": clusterAndFormats,
		"embedded":           clusterAndTypes,
		"client":             clusterAndTypes,
		"runtime":            slices.Concat(formats, clusterAndTypes),
		"tasktracker":        clusterAndTypes,
		"tasktracker/core":   clusterAndTypes,
		"jobtracker/core":    clusterAndTypes,
		"jobtracker":         clusterAndTypes,
		"shuffle":            clusterAndTypes,
		"cmd/mrsubmit":       {module + "/mapreduce$", "github.com/parquet-go/parquet-go$", "github.com/andybalholm/brotli", "github.com/twmb/avro"}, // it has package mapreduce/streaming, which needs no types, and decodes files without large libraries
	} {
		all := listed(t)
		i := slices.IndexFunc(all, func(p *pkg) bool { return p.path() == name })
		if i < 0 {
			continue
		}
		for _, dep := range all[i].Deps {
			for _, tree := range never {
				if exact, ok := strings.CutSuffix(tree, "$"); ok && dep == exact || within(dep, tree) {
					t.Errorf("%s depends on %s", name, dep)
				}
			}
		}
	}
}

// TestNames refuses names of packages and files without meaning, such as util.
func TestNames(t *testing.T) {
	meaningless := []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "shared"}
	for _, p := range listed(t) {
		if slices.Contains(meaningless, p.Name) || slices.Contains(meaningless, path.Base(p.path())) {
			t.Errorf("package %s: the name does not tell its purpose", p.path())
		}
		for _, file := range p.GoFiles {
			if slices.Contains(meaningless, strings.TrimSuffix(file, ".go")) {
				t.Errorf("%s/%s: the name does not tell its purpose", p.path(), file)
			}
		}
	}
}
