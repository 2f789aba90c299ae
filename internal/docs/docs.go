// Package docs generates the parts of docs/ that derive from the code:
//
//	go test ./internal/docs -rewrite
//
// Without -rewrite the test fails where a page is out of date. The package also compares
// docs/reference.md, which is written by hand, with the programs' help. The programs' tests call it.
package docs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quernmr/quern/internal/hadoop"
	"github.com/quernmr/quern/mapreduce"
)

// Properties returns docs/properties.md.
func Properties() string {
	var b strings.Builder
	b.WriteString("# Job properties\n\n" +
		"Set with `-D name=value`, which wins, or in `Job.Properties`; `-D JOB:name=value` sets that of one job of a flow,\n" +
		"and wins over both. Names are Hadoop's where Hadoop has one, and its old names do as well. An unknown `quern.*`\n" +
		"name is refused. Hadoop's other names are refused or have no effect, as [the tables below](#hadoops-other-properties)\n" +
		"say. Any other name is the job's own: `Task.Property` reads it.\n\n" +
		"| property | default | |\n|---|---|---|\n")
	old := oldNames()
	for _, p := range mapreduce.Properties() {
		also := ""
		if names := old[p.Name]; names != "" {
			also = "; once " + names
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", p.Name, code(p.Default), p.Doc, also)
	}
	b.WriteString("\n## Hadoop's other properties\n\n" +
		"Quern refuses a property of Hadoop that would change records or output, also by its old name. A value that asks for\n" +
		"what Quern does anyway is accepted:\n\n" +
		"| refused | accepted value | why, and what to do |\n|---|---|---|\n")
	rules(&b, true)
	b.WriteString("\nThese properties have no effect in Quern, and neither has a `mapreduce.*` or `mapred.*` name that is in no table.\n" +
		"The program warns once of each one that is set:\n\n" +
		"| without effect | no warning for | why |\n|---|---|---|\n")
	rules(&b, false)
	b.WriteString("\nGenerated from the code by `go test ./internal/docs -rewrite`.\n")
	return b.String()
}

// oldNames returns the old names of properties by the current one.
func oldNames() map[string]string {
	all := make(map[string]string)
	for _, old := range slices.Sorted(maps.Keys(hadoop.Renamed())) {
		now := hadoop.Renamed()[old]
		all[now] = strings.TrimPrefix(all[now]+", `"+old+"`", ", ")
	}
	return all
}

// rules writes a row for each reason and value.
func rules(b *strings.Builder, refused bool) {
	names := make(map[string]string)
	var rows []string
	for _, r := range hadoop.Rules() {
		if r.Refused != refused {
			continue
		}
		same := strings.Join(r.Same, ", ")
		row := fmt.Sprintf("%s | %s", code(same), r.Reason)
		if names[row] == "" {
			rows = append(rows, row)
		}
		names[row] = strings.TrimPrefix(names[row]+", `"+r.Name+"`", ", ")
	}
	for _, row := range rows {
		fmt.Fprintf(b, "| %s | %s |\n", names[row], row)
	}
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
