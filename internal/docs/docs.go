// Package docs generates the parts of docs/ that derive from the code:
//
//	go test ./internal/docs -rewrite
//
// Without -rewrite the test fails if a page is out of date. The package also compares
// docs/reference.md, which is written by hand, with the programs' help, for the programs'
// tests.
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
		"Set a property with `-D name=value` or in `Job.Properties`; `-D` wins. In a flow, `-D JOB:name=value` sets it for one\n" +
		"job, and wins over both. If Hadoop has the property, it has Hadoop's name; old names work too. An unknown `quern.*`\n" +
		"name is refused. Hadoop's other names are refused or have no effect: see [the tables below](#hadoops-other-properties).\n" +
		"Any other name is the job's own: `Task.Property` reads it.\n\n" +
		"| property | default | |\n|---|---|---|\n")
	old := oldNames()
	implemented := make(map[string]bool)
	for _, p := range mapreduce.Properties() {
		implemented[p.Name] = true
		also := ""
		if names := old[p.Name]; names != "" {
			also = "; formerly " + names
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", p.Name, code(p.Default), p.Doc, also)
	}
	b.WriteString("\n## Hadoop's other properties\n\n" +
		"Quern refuses a property of Hadoop that would change records or output, under its old name too. It accepts a value\n" +
		"that requests Quern's own behaviour:\n\n" +
		"| refused | accepted value | why, and what to do |\n|---|---|---|\n")
	rules(&b, true)
	b.WriteString("\nThese properties have no effect in Quern. Names `mapreduce.*` and `mapred.*` that are in no table have none either.\n" +
		"The program warns once for each of them that is set:\n\n" +
		"| without effect | no warning for | why |\n|---|---|---|\n")
	rules(&b, false)
	b.WriteString("\n## The most used properties of Hadoop\n\n" +
		"An old name has the effect of the current one.\n\n" +
		"| property | old names | in Quern | why |\n|---|---|---|---|\n")
	for _, name := range hadoop.Used() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, old[name], treatment(name, implemented[name]))
	}
	b.WriteString("\nGenerated from the code by `go test ./internal/docs -rewrite`.\n")
	return b.String()
}

// treatment returns what Quern does with a property of Hadoop, and why.
func treatment(name string, implemented bool) string {
	rule, found := hadoop.Find(name)
	switch {
	case implemented:
		return "supported |"
	case !found:
		return "unknown |"
	}
	does := "no effect"
	if rule.Refused {
		does = "refused"
	}
	switch accepted := code(strings.Join(rule.Accepted, ", ")); {
	case accepted != "" && rule.Refused:
		does += ", except " + accepted
	case accepted != "":
		does += "; no warning for " + accepted
	}
	return does + " | " + rule.Reason
}

// oldNames returns the old names of properties, by current name.
func oldNames() map[string]string {
	all := make(map[string]string)
	for _, old := range slices.Sorted(maps.Keys(hadoop.Renamed())) {
		current := hadoop.Renamed()[old]
		all[current] = strings.TrimPrefix(all[current]+", `"+old+"`", ", ")
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
		accepted := strings.Join(r.Accepted, ", ")
		row := fmt.Sprintf("%s | %s", code(accepted), r.Reason)
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
