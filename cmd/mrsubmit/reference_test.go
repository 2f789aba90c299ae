package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/internal/docs"
)

// TestReference: docs/reference.md has exactly the commands and their flags.
func TestReference(t *testing.T) {
	page := reference(t)
	section := docs.Section(page, "## mrsubmit")
	own := make(map[string]string) // flags in each command's row of the table
	row := regexp.MustCompile("(?m)^\\| `mrsubmit ((?:cluster )?[a-z-]+)[^|]*\\|[^|]*\\| ?(.*)$")
	for _, match := range row.FindAllStringSubmatch(section, -1) {
		own[match[1]] = "| " + match[2] + "\n"
	}
	var want []string
	for _, c := range append(commands(), clusterCommands()...) {
		want = append(want, c.name)
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(own)); !slices.Equal(got, want) {
		t.Errorf("docs/reference.md has the commands %q, want %q", got, want)
	}
	common := section // its only table of flags
	for _, name := range want {
		var help, messages bytes.Buffer
		tool := &tool{stdout: &help, stderr: &messages, getenv: func(string) string { return "" }}
		if code := tool.main(t.Context(), append(strings.Fields(name), "-h")); code != exitDone {
			t.Errorf("mrsubmit %s -h: exit code %d, %s", name, code, &messages)
		}
		flags := own[name]
		switch name {
		case "run":
			flags += docs.Section(page, "### mrsubmit run")
		case "streaming":
			flags = docs.Section(page, "### mrsubmit run")
		case "fs":
			flags = docs.Section(page, "### mrsubmit fs")
		case "cluster certs", "completion": // they need no job tracker
		default:
			flags += common
		}
		for _, difference := range docs.FlagsDiffer(flags, help.String()) {
			t.Errorf("docs/reference.md: mrsubmit %s: %s", name, difference)
		}
	}
}

// firstCells returns the first cells of the rows of a section's tables, each with the rest of its row.
func firstCells(section string) map[string]string {
	rows := make(map[string]string)
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|(.*)$`).FindAllStringSubmatch(section, -1) {
		rows[row[1]] = row[2]
	}
	return rows
}

// TestExitCodes: docs/reference.md has exactly the exit codes that are constants of this package.
func TestExitCodes(t *testing.T) {
	codes := map[string]int{
		"exitDone": exitDone, "exitFailed": exitFailed, "exitUsage": exitUsage, "exitNotStarted": exitNotStarted,
		"exitBrokenPipe": exitBrokenPipe, "exitHadoopUsage": exitHadoopUsage, "errHungUp": client.ExitHungUp,
	}
	var declared []string
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				for _, constant := range spec.(*ast.ValueSpec).Names {
					if name := constant.Name; strings.HasPrefix(name, "exit") || name == "errHungUp" {
						declared = append(declared, name)
					}
				}
			}
		}
	}
	slices.Sort(declared)
	if known := slices.Sorted(maps.Keys(codes)); !slices.Equal(declared, known) {
		t.Errorf("constants %q, want %q", declared, known)
	}
	var want, got []string
	for _, code := range codes {
		want = append(want, strconv.Itoa(code))
	}
	for cell := range firstCells(docs.Section(reference(t), "## mrsubmit")) {
		if _, err := strconv.Atoi(cell); err == nil {
			got = append(got, cell)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("docs/reference.md has the exit codes %q, want %q", got, want)
	}
}

// TestJSONForms: docs/reference.md has exactly the commands with -json, forms of the API, and the fields of own forms.
func TestJSONForms(t *testing.T) {
	quoted := regexp.MustCompile("`([^`]+)`")
	section := docs.Section(reference(t), "### JSON")
	rows := firstCells(section)
	cells := strings.Join(slices.Collect(maps.Keys(rows)), " ")
	var got, fields []string
	for _, name := range quoted.FindAllStringSubmatch(cells, -1) {
		got = append(got, name[1])
	}
	want := []string{"streaming"} // it has the flags of run
	for _, c := range append(commands(), clusterCommands()...) {
		if strings.Contains(c.synopsis, "[-json]") {
			want = append(want, c.name)
		}
	}
	for _, line := range tags(reflect.TypeFor[runLine]()) {
		want, fields = append(want, line), append(fields, line)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/reference.md has %q, want the commands with -json and the fields %q: %q", got, fields, want)
	}
	content, err := os.ReadFile("../../jobtracker/web/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(content, &api); err != nil {
		t.Fatal(err)
	}
	for _, form := range regexp.MustCompile("`(?:\\[\\])?([A-Z][A-Za-z]+)`").FindAllStringSubmatch(section, -1) {
		if api.Components.Schemas[form[1]] == nil {
			t.Errorf("docs/reference.md: openapi.json has no %s", form[1])
		}
	}
	for cell, form := range map[string]reflect.Type{"`logs`": reflect.TypeFor[loggedAttempt](), "`ls`": reflect.TypeFor[listedFile]()} {
		for _, field := range tags(form) {
			if !strings.Contains(rows[cell], "`"+field+"`") {
				t.Errorf("docs/reference.md: %s: no field %s", cell, field)
			}
		}
	}
}

// tags returns the names of a form's own fields in JSON.
func tags(form reflect.Type) (names []string) {
	for i := range form.NumField() {
		if name, _, _ := strings.Cut(form.Field(i).Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func reference(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
