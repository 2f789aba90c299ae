package docs

import "strings"

// Avoided returns the words and phrases of the glossary's column "Not", each with the word
// to use instead.
func Avoided(glossary string) map[string]string {
	instead := make(map[string]string)
	for line := range strings.Lines(glossary) {
		if columns := strings.Split(line, "|"); len(columns) == 5 {
			for phrase := range strings.SplitSeq(columns[3], ",") {
				instead[strings.ToLower(strings.TrimSpace(phrase))] = strings.TrimSpace(columns[1])
			}
		}
	}
	delete(instead, "")
	delete(instead, "not")
	delete(instead, "---")
	return instead
}
