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
		"Set a property with `-D name=value` or in `Job.Properties`. In a flow (several jobs submitted together),\n" +
		"`-D JOB:name=value` sets it for one job. `-D JOB:` wins over `-D`, and `-D` wins over `Job.Properties`.\n\n" +
		"| Name | Treatment |\n|---|---|\n" +
		"| a name in the table below, or its old name in Hadoop | used |\n" +
		"| another name of Hadoop | [refused or ignored](#hadoops-other-properties) |\n" +
		"| an unknown name that begins with `quern.` | refused |\n" +
		"| any other name | the job's own property: `Task.Property` reads it |\n\n" +
		"| Property | Default | Meaning |\n|---|---|---|\n")
	old := oldNames()
	for _, p := range mapreduce.Properties() {
		also := ""
		if names := old[p.Name]; names != "" {
			also = "; old name: " + names
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", p.Name, code(p.Default), p.Doc, also)
	}
	b.WriteString("\n## Hadoop's other properties\n\n" +
		"Quern refuses these properties, because in Hadoop they change records or output. It accepts a value that asks for\n" +
		"Quern's own behaviour. Old names are treated the same:\n\n" +
		"| Refused property | Accepted value | Reason, and what to do |\n|---|---|---|\n")
	rules(&b, true)
	b.WriteString("\nThese properties have no effect. The program warns once of each one that is set. It also warns of a `mapreduce.*` or\n" +
		"`mapred.*` name that is in no table:\n\n" +
		"| Ignored property | Value without a warning | Reason |\n|---|---|---|\n")
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
