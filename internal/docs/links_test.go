package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestLinks: pages link only to files and headings that exist.
func TestLinks(t *testing.T) {
	pages := pagesBelow(t, "../..")
	if len(pages) < 15 {
		t.Errorf("%d pages were found", len(pages))
	}
	links := 0
	for _, page := range pages {
		for _, link := range linksOf(text(t, page)) {
			links++
			if err := follow(page, link); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if links < 50 {
		t.Errorf("%d links were found", links)
	}
}

// TestBrokenLinks: follow finds broken links, and linksOf finds links outside code.
func TestBrokenLinks(t *testing.T) {
	dir := t.TempDir()
	page, other := filepath.Join(dir, "page.md"), filepath.Join(dir, "other.md")
	for name, content := range map[string]string{page: "# A *page*\n\n## Twice\n## Twice\n\n```\n# no heading\n```\n", other: "# `code`, and more (1.5 x)\n"} {
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for link, there := range map[string]bool{
		"#a-page": true, "#twice": true, "#twice-1": true, "other.md": true, "other.md#code-and-more-15-x": true,
		"./": true, "https://example.org/x#y": true,
		"#a": false, "#twice-2": false, "#no-heading": false, "other.md#a-page": false, "another.md": false, "../page.md": false,
	} {
		if err := follow(page, link); (err == nil) != there {
			t.Errorf("%s: %v", link, err)
		}
	}
	got := linksOf("[a](b.md) ![c](d.svg \"title\") `[no](link)` [e\nf](#g)\n```\n[no](link)\n```\n[h]: i.md\n")
	if want := []string{"b.md", "d.svg", "#g", "i.md"}; !slices.Equal(got, want) {
		t.Errorf("links %q, want %q", got, want)
	}
}

// pagesBelow lists pages, except fragments of generated pages.
func pagesBelow(t *testing.T, root string) (pages []string) {
	t.Helper()
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "page" && strings.Contains(path, "sim/papers/")):
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			pages = append(pages, path)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return pages
}

func text(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var (
	fence  = regexp.MustCompile("(?ms)^```.*?^```")
	inline = regexp.MustCompile("`[^`\n]*`")
	link   = regexp.MustCompile(`\]\(([^)\s]+)[^)]*\)|(?m:^\[[^\]]+\]:\s*(\S+))`)
	title  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

// linksOf lists the targets of a page's links. It ignores links in code.
func linksOf(page string) (targets []string) {
	page = inline.ReplaceAllString(fence.ReplaceAllString(page, ""), "")
	for _, match := range link.FindAllStringSubmatch(page, -1) {
		targets = append(targets, match[1]+match[2])
	}
	return targets
}

// follow checks that the target of a page's link exists. It accepts all URLs.
func follow(page, target string) error {
	if strings.Contains(target, "://") {
		return nil
	}
	name, anchor, _ := strings.Cut(target, "#")
	if name == "" {
		name = page
	} else {
		name = filepath.Join(filepath.Dir(page), name)
	}
	if _, err := os.Stat(name); err != nil || anchor == "" {
		return err
	}
	content, err := os.ReadFile(name)
	if err == nil && !slices.Contains(anchors(string(content)), anchor) {
		err = fmt.Errorf("link to %s: %s has no such heading", target, name)
	}
	return err
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(page string) (all []string) {
	seen := make(map[string]int)
	for _, match := range title.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(match[1]))
		if n := seen[anchor]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			all = append(all, anchor)
		}
		seen[anchor]++
	}
	return all
}
