package web

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReference: docs/reference.md has exactly the routes of the handler, with their roles, and the
// codes of errors.
func TestReference(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	var routes, documented []string
	for _, r := range (&handler{}).routes() {
		var roles []string
		for _, role := range r.roles {
			roles = append(roles, string(role))
		}
		routes = append(routes, fmt.Sprintf("%s for %s", r.pattern, strings.Join(roles, ", ")))
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]*)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, row[1]+" for "+row[2])
	}
	compareDocs(t, "route", documented, routes)

	var codes, explained []string
	for _, k := range errorKinds() {
		codes = append(codes, fmt.Sprintf("%d %s", k.status, k.code))
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d{3}) \| (.*) \|$`).FindAllStringSubmatch(string(page), -1) {
		for _, code := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(row[2], -1) {
			explained = append(explained, row[1]+" "+code[1])
		}
	}
	compareDocs(t, "code", explained, codes)
}

func compareDocs(t *testing.T, what string, documented, want []string) {
	t.Helper()
	for _, x := range want {
		if !slices.Contains(documented, x) {
			t.Errorf("docs/reference.md does not have the %s %s", what, x)
		}
	}
	for _, x := range documented {
		if !slices.Contains(want, x) {
			t.Errorf("docs/reference.md has the %s %s, which does not exist", what, x)
		}
	}
}
