package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromises: every test that docs/promises.md names exists.
func TestPromises(t *testing.T) {
	page, err := os.ReadFile("../../docs/promises.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		columns := strings.Split(line, "|")
		if len(columns) != 6 || strings.HasPrefix(columns[1], "-") || strings.TrimSpace(columns[1]) == "#" {
			continue
		}
		rows++
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(columns[4], -1)
		if len(names) == 0 && !strings.Contains(columns[3], "Not promised") {
			t.Errorf("row %s promises without a test", columns[1])
		}
		for _, name := range names {
			if !exists(t, name[1]) {
				t.Errorf("row %s names %s, which does not exist", columns[1], name[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows were found", rows)
	}
}

// TestNamedTests: the tests that CONTRIBUTING.md and docs/compat.md name exist.
func TestNamedTests(t *testing.T) {
	for _, page := range []string{"../../CONTRIBUTING.md", "../../docs/compat.md", "../../docs/security.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile("`([a-z/]+\\.Test[A-Za-z]+)`").FindAllStringSubmatch(string(text), -1)
		if len(names) < 5 {
			t.Errorf("%s names %d tests", page, len(names))
		}
		for _, name := range names {
			if !exists(t, name[1]) {
				t.Errorf("%s names %s, which does not exist", page, name[1])
			}
		}
	}
}

// exists reports whether package.TestName or a .txt file exists.
func exists(t *testing.T, name string) bool {
	t.Helper()
	if strings.HasSuffix(name, ".txt") {
		_, err := os.Stat(filepath.Join("../..", name))
		return err == nil
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return false
	}
	files, err := filepath.Glob(filepath.Join("../..", name[:dot], "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name[dot+1:]+"(t *testing.T)") {
			return true
		}
	}
	return false
}
