package lint

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// prose is text for readers: a comment, a message or a page.
type prose struct {
	file string // path within the module
	line int    // line of the file where text begins
	text string // with the same number of lines as in the file
	page bool
}

// proseOf collects the comments and messages of all packages, the comments of their test data,
// and all pages.
func proseOf(t *testing.T) (all []prose) {
	t.Helper()
	for _, p := range listed(t) {
		for _, file := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			all = append(all, parse(t, p, file).prose(strings.HasSuffix(file, "_test.go"))...)
		}
	}
	generated := regexp.MustCompile(`^docs/(papers/|properties\.md$)`) // the texts that they are generated from are linted
	if err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		}
		name := strings.TrimPrefix(path, "../../")
		data := strings.Contains(name, "/testdata/")
		page := strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".md.tmpl")
		if d.IsDir() || generated.MatchString(name) || page == data || data && !strings.HasSuffix(name, ".txt") {
			return nil
		}
		text, err := os.ReadFile(path)
		if data {
			all = append(all, prose{name, 1, scenarioComments(string(text)), false})
		} else {
			all = append(all, prose{name, 1, string(text), true})
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// scenarioComments keeps the lines that begin with "#", without it.
func scenarioComments(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i], _ = strings.CutPrefix(line, "#")
		if lines[i] == line {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

// prose collects a file's comments. If the file is not a test, it also collects literals of
// more than one word: errors, help, log lines. Literals of tests are mostly data.
func (s *source) prose(test bool) (all []prose) {
	if ast.IsGenerated(s.file) {
		return nil
	}
	add := func(at token.Pos, text string) {
		all = append(all, prose{s.name, s.set.Position(at).Line, text, false})
	}
	names := make(map[string]bool)
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Ident:
			names[n.Name] = true
		case *ast.Field:
			n.Tag = nil // tags are not text
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && !test && strings.Contains(strings.TrimSpace(text), " ") {
				if n.Value[0] != '`' {
					text = strings.ReplaceAll(text, "\n", " ")
				}
				add(n.Pos(), text)
			}
		}
		return true
	})
	for _, group := range s.file.Comments {
		var lines []string
		for _, c := range group.List {
			lines = append(lines, strings.Split(c.Text, "\n")...)
		}
		for i, line := range lines {
			text, short := strings.CutPrefix(line, "//")
			switch {
			case !short:
				text = strings.TrimPrefix(line, "/*")
			case strings.HasPrefix(text, "\t"), text != "" && text[0] != ' ': // code, or a directive
				text = ""
			}
			lines[i] = strings.TrimSpace(text)
		}
		text := strings.Join(lines, "\n")
		if first, rest, _ := strings.Cut(text, " "); names[first] { // a doc comment begins with the name
			text = "_ " + rest
		}
		add(group.Pos(), text)
	}
	return all
}

var (
	code       = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```|`[^`]*`|\\{\\{.*?\\}\\}|[a-z]+://\\S+|<!--.*?-->")
	target     = regexp.MustCompile(`\]\([^)\n]*\)`) // of a link
	quoted     = regexp.MustCompile(`"[^"]{1,80}"|“[^”]{1,80}”`)
	end        = regexp.MustCompile(`(?m)([.!?])[)"*_]*(?:\s|$)|^\s*$|^#+ .*$|^\s*(?:[-*>•]|\d+\.)\s|\||\z`) // of a sentence
	besideName = regexp.MustCompile(`[._/-]\x00|\x00([_/(-]|\.\w)|\[\x00\]`)                                 // the word at the zero byte is part of a name in code
)

// blank replaces matches of expr by the word _ and keeps the line breaks.
func blank(expr *regexp.Regexp, text string) string {
	return expr.ReplaceAllStringFunc(text, func(found string) string { return "_" + strings.Repeat("\n", strings.Count(found, "\n")) })
}
