// Package spelling finds the name that a mistyped one probably stands for. All its functions are
// functions of values.
package spelling

import "strings"

// Edits counts the bytes to insert, remove or replace to make b from a.
func Edits(a, b string) int {
	row := make([]int, len(b)+1) // counts for the beginnings of b, and the bytes of a so far
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// maxName limits the names that are compared: the time grows with the square of their length.
const maxName = 64

// Nearest returns the known name with the fewest edits from name, the first one among equals. It is
// at most two edits away, and at most half of name. Otherwise Nearest returns the only known name
// that begins with name, or "".
func Nearest(name string, known []string) string {
	if len(name) > maxName {
		return ""
	}
	nearest, fewest := "", min(2, len(name)/2)+1
	var begins []string
	for _, k := range known {
		if n := Edits(name, k); n < fewest {
			nearest, fewest = k, n
		}
		if strings.HasPrefix(k, name) {
			begins = append(begins, k)
		}
	}
	if nearest == "" && name != "" && len(begins) == 1 {
		return begins[0]
	}
	return nearest
}

// DidYouMean returns " (did you mean NEAREST?)", with prefix before the name, or "".
func DidYouMean(prefix, name string, known []string) string {
	if nearest := Nearest(name, known); nearest != "" {
		return " (did you mean " + prefix + nearest + "?)"
	}
	return ""
}
