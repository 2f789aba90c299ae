package docs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Section returns the part of a page below a heading such as "### jobtracker", up to the
// next heading of any level. It is empty if the page has no such heading.
func Section(page, heading string) string {
	_, section, _ := strings.Cut("\n"+page, "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	return section
}

var (
	documentedFlag = regexp.MustCompile("`-([A-Za-z][A-Za-z-]*)")
	defaultOfFlag  = regexp.MustCompile(`\(default (?:"([^"]+)"|(\d\w*))\)`)
)

// Flags returns the flags in the first column of a section's tables, each with its row.
func Flags(section string) map[string]string {
	rows := make(map[string]string)
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `-") {
			first, _, _ := strings.Cut(line[2:], " | ")
			for _, name := range documentedFlag.FindAllStringSubmatch(first, -1) {
				rows[name[1]] = line
			}
		}
	}
	return rows
}

// FlagsDiffer compares the flags in a program's help, as package flag prints it, with the
// flags of a section. It returns a line for each flag that only one of them has, and for
// each default that the flag's row does not name.
func FlagsDiffer(section, help string) (differences []string) {
	rows := Flags(section)
	name := ""
	for line := range strings.Lines(help) {
		if flag, ok := strings.CutPrefix(line, "  -"); ok {
			name = strings.Fields(flag)[0]
			if rows[name] == "" {
				differences = append(differences, fmt.Sprintf("-%s is not documented", name))
			}
		}
		value := defaultOfFlag.FindStringSubmatch(line)
		if value == nil || rows[name] == "" || strings.Contains(rows[name], "one per core") { // depends on the machine
			continue
		}
		if text := value[1] + value[2]; !strings.Contains(rows[name], "`"+text+"`") {
			differences = append(differences, fmt.Sprintf("-%s has the default %s, which is not documented", name, text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if !regexp.MustCompile(`(?m)^  -` + name + `(\s|$)`).MatchString(help) {
			differences = append(differences, fmt.Sprintf("-%s is documented, but it does not exist", name))
		}
	}
	return differences
}
