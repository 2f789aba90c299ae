package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce"
)

var word = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// TestGlossary: JSON fields, columns of tables, commands, flags, routes and properties are
// named without the words that the glossary avoids.
func TestGlossary(t *testing.T) {
	instead := Avoided(text(t, "../../docs/glossary.md"))
	if instead["terms"] != "job settings" || len(instead) < 20 {
		t.Fatalf("the glossary avoids %q", instead)
	}
	var names []string
	for _, p := range mapreduce.Properties() {
		if own, ok := strings.CutPrefix(p.Name, "quern."); ok {
			names = append(names, own)
		}
	}
	field := regexp.MustCompile("json:\"([A-Za-z]+)")
	heading := regexp.MustCompile(`"([A-Z][A-Z ]+)"`)
	for _, dir := range []string{"jobtracker/web", "cmd/mrsubmit", "cmd/internal/daemon", "tasktracker"} {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source := text(t, file)
			for _, match := range append(field.FindAllStringSubmatch(source, -1), heading.FindAllStringSubmatch(source, -1)...) {
				names = append(names, match[1])
			}
		}
	}
	// Other tests compare this page with the help of the programs, and with the routes.
	for _, match := range regexp.MustCompile("`(?:-|mrsubmit |[A-Z]+ /)([^`]+)`").FindAllStringSubmatch(text(t, "../../docs/reference.md"), -1) {
		names = append(names, word.FindAllString(match[1], -1)...)
	}
	if len(names) < 200 {
		t.Errorf("%d names were found", len(names))
	}
	for _, name := range names {
		for _, w := range word.FindAllString(name, -1) {
			if say := instead[strings.ToLower(w)]; say != "" {
				t.Errorf("the name %q has the word %q: docs/glossary.md says %s", name, w, say)
			}
		}
	}
}
