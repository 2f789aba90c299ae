// Package examples has inputs for the example jobs, and what Hadoop's examples write for them. The inputs are
// made from seeds. Make compat runs Hadoop 3.4.2 on them and writes hadoop.txt: for each run and file a line
// with the run's name, the file's name, and the content, quoted, or the SHA-256 of a longer content.
package examples

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Recorded is the file with the answers of Hadoop's examples.
const Recorded = "integration/examples/hadoop.txt"

//go:embed hadoop.txt
var answers string

// Pattern is searched for in Text. Its matches have different counts, so their order is defined.
const Pattern = "[a-z]+ta"

// Rows is the number of rows that are sorted.
const Rows = 200

// Text returns lines of words. Some words are frequent, and blanks stand between them in many ways.
func Text(lines int) string {
	words := strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda my ny xi omikron pi rho sigma tau ypsilon")
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for range lines {
		for range random.IntN(6) {
			word := words[int(random.Float64()*random.Float64()*float64(len(words)))]
			b.WriteString(word + []string{" ", "  ", ", ", " \u00e4\U0001f600 "}[random.IntN(4)])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Numbers returns lines of two numbers; some lack the second one, some are empty.
func Numbers(lines int) string {
	random := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	for range lines {
		switch a, c := random.IntN(21)-10, int32(random.Uint32()); random.IntN(10) {
		case 0:
			fmt.Fprintf(&b, "%d\n", a)
		case 1:
			b.WriteString("\n")
		default:
			fmt.Fprintf(&b, " %d\t%d\n", a, c)
		}
	}
	return b.String()
}

// Table returns lines of key and value, sorted by key. Some keys are missing; each comes once or twice.
func Table(name string, lines int) string {
	random := rand.New(rand.NewPCG(5, uint64(name[0])))
	var b strings.Builder
	for key := range lines {
		for i := range random.IntN(3) {
			fmt.Fprintf(&b, "k%04d\t%s%d\n", key, name, i)
		}
	}
	return b.String()
}

// Damage returns rows with two of them exchanged.
func Damage(rows string) string {
	return rows[100:200] + rows[:100] + rows[200:]
}

// Sentences describes lines of random words: the numbers of words in keys and values, and whether the line
// before the last ends before limit bytes of keys and values.
func Sentences(lines string) string {
	const limit = 1_000_000
	var keys, values [2]int
	size, before := 0, 0
	for line := range strings.Lines(lines) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		for text, words := range map[string]*[2]int{key: &keys, value: &values} {
			n := strings.Count(text, " ")
			if !strings.HasSuffix(text, " ") || len(strings.Fields(text)) != n {
				return "blanks are missing in " + line
			}
			if words[0] == 0 || n < words[0] {
				words[0] = n
			}
			words[1] = max(words[1], n)
		}
		before, size = size, size+len(key)+len(value)
	}
	return fmt.Sprintf("keys of %d to %d words, values of %d to %d, %v before and %v after the last line\n", keys[0], keys[1], values[0], values[1], before < limit, size < limit)
}

// Sorted returns the lines of files, sorted.
func Sorted(files map[string]string) string {
	lines := strings.SplitAfter(strings.Join(slices.Collect(maps.Values(files)), ""), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// Lines returns the lines about a run's files in the file with Hadoop's answers.
func Lines(run string, files map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := strconv.Quote(files[name])
		if len(content) > 300 {
			content = fmt.Sprintf("%x", sha256.Sum256([]byte(files[name])))
		}
		fmt.Fprintf(&b, "%s %s %s\n", run, name, content)
	}
	return b.String()
}

// Check fails the test if files are not those that Hadoop has written in a run.
func Check(t testing.TB, run string, files map[string]string) {
	t.Helper()
	var want strings.Builder
	for line := range strings.Lines(answers) {
		if strings.HasPrefix(line, run+" ") {
			want.WriteString(line)
		}
	}
	if got := Lines(run, files); want.Len() == 0 || got != want.String() {
		t.Errorf("%s: got\n%swant, as Hadoop has written,\n%s", run, got, want.String())
	}
}

// Answer returns the content of a file that Hadoop has written in a run; it fails the test if only a hash is recorded.
func Answer(t testing.TB, run, file string) string {
	t.Helper()
	for line := range strings.Lines(answers) {
		if quoted, ok := strings.CutPrefix(strings.TrimSpace(line), run+" "+file+" "); ok {
			if content, err := strconv.Unquote(quoted); err == nil {
				return content
			}
		}
	}
	t.Fatalf("no content of %s of run %s is recorded", file, run)
	return ""
}
