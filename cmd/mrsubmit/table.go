package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/quernmr/quern/client"
)

// Colors of a terminal, as parameters of its escape sequence.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// printTable prints rows in columns, without control characters. The first row has the titles. On a
// terminal it colors them, and the cells of states, deadlines and predicted ends.
func (t *tool) printTable(rows [][]string) error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = client.OneLine(cell)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush() // writes to a buffer never fail
	if t.colors == nil {
		_, err := t.stdout.Write(b.Bytes())
		return err
	}
	_, err := t.colors.Write(coloredTable(rows, b.String()))
	return err
}

// coloredTable colors the text of a table.
func coloredTable(rows [][]string, text string) []byte {
	lines := strings.Split(text, "\n")
	starts := make([]int, len(rows[0])) // of the columns, in characters
	at := 0
	for i, title := range rows[0] {
		at += strings.Index(lines[0][at:], title)
		starts[i] = at // titles are ASCII
		at += len(title)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "\x1b[%sm%s\x1b[m\n", bold, lines[0])
	for n, row := range rows[1:] {
		line := []rune(lines[n+1])
		for i := range slices.Backward(starts) {
			color := cellColor(rows[0][i], row[i])
			if color == "" {
				continue
			}
			end := starts[i] + utf8.RuneCountInString(row[i])
			line = slices.Concat(line[:starts[i]], []rune("\x1b["+color+"m"), line[starts[i]:end], []rune("\x1b[m"), line[end:])
		}
		fmt.Fprintf(&b, "%s\n", string(line))
	}
	return b.Bytes()
}

// cellColor returns the color of a cell in the column with a title, or "".
func cellColor(title, cell string) string {
	switch title {
	case "STATE":
		word := strings.FieldsFunc(cell, func(r rune) bool { return strings.ContainsRune(" ,:;", r) })
		if len(word) == 0 {
			return ""
		}
		return stateColor(word[0])
	case "DEADLINE", "ENDS":
		if strings.Contains(cell, "late") || strings.Contains(cell, "miss") || strings.Contains(cell, "will cost") {
			return red
		}
	}
	return ""
}

// stateColor returns the color for the first word of a state of a job, an attempt or a task tracker.
func stateColor(word string) string {
	switch word {
	case "succeeded", "good":
		return green
	case "failed", "lost", "not":
		return red
	case "killed", "stopping", "suspended", "draining", "drained", "excluded":
		return yellow
	case "running", "committing":
		return cyan
	}
	return ""
}
