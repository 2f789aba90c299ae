package web

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const referencePage = "../../docs/reference.md"

// TestReference: docs/reference.md has the routes and the codes of errors in two tables, which -rewrite makes.
func TestReference(t *testing.T) {
	page, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, part := range []struct{ name, table string }{{"routes", routeTable()}, {"errors", codeTable()}} {
		begin, end := fmt.Sprintf("<!-- %s: made by go test ./jobtracker/web -rewrite -->\n", part.name), fmt.Sprintf("<!-- end of %s -->\n", part.name)
		before, rest, found := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s lacks the lines %q and %q", referencePage, begin, end)
		}
		text = before + begin + part.table + end + after
	}
	if err := compareFile(referencePage, []byte(text)); err != nil {
		t.Error(err)
	}
}

// routeTable lists the routes for readers.
func routeTable() string {
	var b strings.Builder
	b.WriteString("| Route | Does | Query | Body | Answer | Roles | Users |\n|---|---|---|---|---|---|---|\n")
	for _, x := range new(handler).routes() {
		var names, roles []string
		for _, p := range x.query {
			names = append(names, "`"+p.name+"`")
		}
		for _, role := range x.roles {
			roles = append(roles, string(role))
		}
		users := string(x.rule)
		if x.rule == everyDaemon {
			users = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", x.pattern, strings.TrimSuffix(x.summary, "."), strings.Join(names, ", "), formOf(x.body), formOf(x.answer), strings.Join(roles, ", "), users)
	}
	return b.String()
}

// formOf names the form of a body or answer.
func formOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case contentType:
		if v == "" {
			return ""
		}
		return "`" + string(v) + "`"
	}
	return schemaName(reflect.TypeOf(v))
}

// codeTable lists the codes of errors by status. Each has an anchor, to which the type of the error leads.
func codeTable() string {
	var b strings.Builder
	b.WriteString("| Status | Codes |\n|---|---|\n")
	kinds := errorKinds()
	slices.SortStableFunc(kinds, func(x, y errorKind) int { return x.status - y.status })
	for i, k := range kinds {
		code := fmt.Sprintf("<a id=\"error-%s\"></a>`%[1]s`", k.code)
		switch {
		case i == 0:
			fmt.Fprintf(&b, "| %d | %s", k.status, code)
		case kinds[i-1].status != k.status:
			fmt.Fprintf(&b, " |\n| %d | %s", k.status, code)
		default:
			b.WriteString(", " + code)
		}
	}
	return b.String() + " |\n"
}
