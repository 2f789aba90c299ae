package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce"
)

// avoided lists the single words in the glossary's column "Not".
func avoided(page string) (words []string) {
	for line := range strings.Lines(page) {
		if columns := strings.Split(line, "|"); len(columns) == 5 {
			for phrase := range strings.SplitSeq(columns[3], ",") {
				if phrase = strings.TrimSpace(phrase); phrase != "" && !strings.Contains(phrase, " ") {
					words = append(words, strings.ToLower(phrase))
				}
			}
		}
	}
	return words
}

var word = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// TestGlossary: names of JSON fields, columns of tables and properties use no word that the glossary avoids.
func TestGlossary(t *testing.T) {
	words := avoided(text(t, "../../docs/glossary.md"))
	if !slices.Contains(words, "terms") || len(words) < 10 {
		t.Fatalf("the glossary avoids %q", words)
	}
	var names []string
	for _, p := range mapreduce.Properties() {
		if own, ok := strings.CutPrefix(p.Name, "quern."); ok {
			names = append(names, own)
		}
	}
	field := regexp.MustCompile("json:\"([A-Za-z]+)")
	heading := regexp.MustCompile(`"([A-Z][A-Z ]+)"`)
	for _, dir := range []string{"jobtracker/web", "cmd/mrsubmit"} {
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
	if len(names) < 100 {
		t.Errorf("%d names were found", len(names))
	}
	renamed := []string{"terms"} // names that are to change
	for _, name := range names {
		for _, w := range word.FindAllString(name, -1) {
			if w = strings.ToLower(w); slices.Contains(words, w) && !slices.Contains(renamed, name) {
				t.Errorf("the name %q has the word %q, which docs/glossary.md avoids", name, w)
			}
		}
	}
}
