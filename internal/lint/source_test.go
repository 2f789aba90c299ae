package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is a parsed file.
type source struct {
	name  string // path within the module
	text  []byte
	set   *token.FileSet
	file  *ast.File
	names map[string]string // of imports: local name to path
}

func parse(t *testing.T, p *pkg, file string) *source {
	t.Helper()
	s := &source{name: p.path() + "/" + file, set: token.NewFileSet(), names: make(map[string]string)}
	var err error
	full := filepath.Join(p.Dir, file)
	if s.text, err = os.ReadFile(full); err != nil {
		t.Fatal(err)
	}
	if s.file, err = parser.ParseFile(s.set, full, s.text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		t.Fatal(err)
	}
	for _, spec := range s.file.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		local := importPath[strings.LastIndexByte(importPath, '/')+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
		s.names[local] = importPath
	}
	return s
}

// uses lists where a file uses members of packages, such as time.Now.
func (s *source) uses(members ...string) []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok {
			if use := s.names[x.Name] + "." + sel.Sel.Name; slices.Contains(members, use) {
				found = append(found, fmt.Sprintf("%s:%d uses %s", s.name, s.set.Position(sel.Pos()).Line, use))
			}
		}
		return true
	})
	return found
}

// TestPurePackages: cores, policies and delay rules are functions of values.
func TestPurePackages(t *testing.T) {
	pure := []string{"scheduler", "locality", "jobtracker/core", "tasktracker/core"}
	never := []string{"net", "os", "log", "syscall", "io/fs", "math/rand", "crypto/rand", "github.com/hashicorp", module + "/dfs"}
	for _, p := range listed(t) {
		if !slices.ContainsFunc(pure, func(tree string) bool { return within(p.path(), tree) }) {
			continue
		}
		for _, imported := range p.Imports {
			for _, tree := range never {
				if within(imported, tree) {
					t.Errorf("%s imports %s: it must be a function of values", p.path(), imported)
				}
			}
		}
		for _, file := range p.GoFiles {
			for _, use := range parse(t, p, file).uses("time.Now", "time.Since", "time.Until", "time.Sleep", "time.After",
				"time.AfterFunc", "time.Tick", "time.NewTimer", "time.NewTicker") {
				t.Errorf("%s: time must be an argument", use)
			}
		}
	}
}

// goroutines lists where a file starts a goroutine: with a go statement, or with a method
// such as Go of sync.WaitGroup or Parallel of testing.T.
func (s *source) goroutines() []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		starts := false
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.SelectorExpr:
			starts = slices.Contains([]string{"Go", "Parallel", "RunParallel", "AfterFunc"}, n.Sel.Name)
		}
		if starts {
			found = append(found, fmt.Sprintf("%s:%d starts a goroutine", s.name, s.set.Position(n.Pos()).Line))
		}
		return true
	})
	return found
}

// TestOneGoroutine: the trees in tools/norace and their tests start no goroutine, because
// tools/check.sh tests them without the race detector.
func TestOneGoroutine(t *testing.T) {
	list, err := os.ReadFile("../../tools/norace")
	if err != nil {
		t.Fatal(err)
	}
	trees := make(map[string]bool) // true: the module has it
	for _, tree := range strings.Fields(string(list)) {
		trees[tree] = false
	}
	for _, p := range listed(t) {
		for tree := range trees {
			if !within(p.path(), tree) {
				continue
			}
			trees[tree] = true
			for _, file := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
				for _, line := range parse(t, p, file).goroutines() {
					t.Errorf("%s: tools/norace must not list %s", line, tree)
				}
			}
		}
	}
	for tree, exists := range trees {
		if !exists {
			t.Errorf("tools/norace lists %s, which has no package", tree)
		}
	}
}

// TestTestsDoNotSleep: tests wait for events, not for a fixed time.
func TestTestsDoNotSleep(t *testing.T) {
	for _, p := range listed(t) {
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			for _, use := range parse(t, p, file).uses("time.Sleep") {
				t.Errorf("%s: wait for an event instead", use)
			}
		}
	}
}

// TestScenariosAreGlobbed: tests find scenarios by glob. A walk would also find rapid's
// failures, which are below testdata.
func TestScenariosAreGlobbed(t *testing.T) {
	walk := []byte(`datadriven.Walk(t, "testdata"` + ",")
	for _, p := range listed(t) {
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			if s := parse(t, p, file); bytes.Contains(s.text, walk) {
				t.Errorf("%s walks testdata: use the glob testdata/*.txt", s.name)
			}
		}
	}
}

const maxLines = 500

// beforeMain is a package that works before most packages are initialised.
const beforeMain = "tasktracker/isolation/enter"

// TestFiles limits the size of files, and refuses unfinished sources and registries that
// run before main.
func TestFiles(t *testing.T) {
	unfinished := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)
	for _, p := range listed(t) {
		for _, file := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			s := parse(t, p, file)
			if lines := strings.Count(string(s.text), "\n"); lines > maxLines {
				t.Errorf("%s has %d lines: at most %d", s.name, lines, maxLines)
			}
			if at := unfinished.FindIndex(s.text); at != nil {
				t.Errorf("%s says %s", s.name, s.text[at[0]:at[1]])
			}
			for _, decl := range s.file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && p.path() != beforeMain {
					t.Errorf("%s has an init function: wire things in main", s.name)
				}
			}
		}
	}
}

// TestPackageComments: every package has a package comment.
func TestPackageComments(t *testing.T) {
	for _, p := range listed(t) {
		documented := len(p.GoFiles) == 0
		for _, file := range p.GoFiles {
			documented = documented || parse(t, p, file).file.Doc != nil
		}
		if !documented {
			t.Errorf("package %s has no package comment", p.path())
		}
	}
}

// TestNoShell: no code starts a shell, which would interpret names from users. Only a few
// packages start processes, and they pass arguments unchanged. One file gives a shell a script of the user: the path and its
// arguments, but nothing to interpret.
func TestNoShell(t *testing.T) {
	const scripts = "mapreduce/streaming/start.go"
	tools := []string{"bench", "examples", "integration", "internal/mutants", "tools"} // no daemon or command imports them
	allowed := []string{"client", "cmd/internal/ui", "jobfile", "mapreduce/streaming", "tasktracker/account", "tasktracker/cgroup", "tasktracker/healthscript", "tasktracker/isolation", "tasktracker/isolation/enter", "tasktracker/process"}
	shell := regexp.MustCompile(`"(/usr)?(/bin/)?(sh|bash|dash|ksh|zsh|env|cmd|cmd\.exe|powershell)"`)
	found := make(map[string]bool)
	for _, p := range listed(t) {
		if slices.ContainsFunc(tools, func(tree string) bool { return within(p.path(), tree) }) {
			continue
		}
		for _, file := range p.GoFiles {
			s := parse(t, p, file)
			if word := shell.Find(s.text); word != nil && s.name != scripts {
				t.Errorf("%s names the shell %s", s.name, word)
			}
			uses := s.uses("os/exec.Command", "os/exec.CommandContext", "os.StartProcess", "syscall.ForkExec", "syscall.StartProcess", "syscall.Exec", "golang.org/x/sys/unix.Exec")
			if found[p.path()] = found[p.path()] || len(uses) > 0; len(uses) > 0 && !slices.Contains(allowed, p.path()) {
				t.Errorf("%v: only %v may start processes", uses, allowed)
			}
		}
	}
	for _, path := range allowed {
		if !found[path] {
			t.Errorf("%s starts no process: remove it from allowed, or complete the list of functions", path)
		}
	}
}
