// Package docs generates the parts of docs/ that follow from the code:
//
//	go test ./internal/docs -rewrite
//
// Without -rewrite the test fails where a page is out of date.
package docs

import (
	"fmt"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

// Properties is docs/properties.md.
func Properties() string {
	var b strings.Builder
	b.WriteString("# Job properties\n\n" +
		"Set with `-D name=value`, which wins, or in `Job.Properties`. Names are Hadoop's where Hadoop has one; a\n" +
		"`mapreduce.*` name that is not listed has no effect and is warned of, an unknown `quern.*` name is refused.\n" +
		"Any other name is the job's own: `Task.Property` reads it.\n\n" +
		"| property | default | |\n|---|---|---|\n")
	for _, p := range mapreduce.Properties() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, code(p.Default), p.Doc)
	}
	b.WriteString("\nGenerated from the code by `go test ./internal/docs -rewrite`.\n")
	return b.String()
}

func code(value string) string {
	switch value {
	case "":
		return ""
	case "\t":
		return "tab"
	}
	return "`" + value + "`"
}
