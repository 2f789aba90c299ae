package lint

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/internal/docs"
)

var rewrite = flag.Bool("rewrite", false, "lower the ceilings to what there is now")

// finding is a word or a shape that readers stumble over.
type finding struct {
	line    int
	found   string
	certain bool // refused; otherwise it also has plain uses, and is only counted
	instead string
}

func (f finding) String() string {
	return fmt.Sprintf("%d: %s %q", f.line, map[bool]string{true: "refused", false: "counted"}[f.certain], f.found)
}

const maxWords = 35 // of a sentence on a page

// phrase is what readers stumble over, with what to say instead, or one that is plain
// though a part of it is not: then instead is empty.
type phrase struct {
	instead string
	certain bool
}

// linter finds phrases, by a regular expression of all of them.
type linter struct {
	phrases map[string]phrase
	expr    *regexp.Regexp
}

// newLinter has the phrases of the glossary's column "Not", and the style's.
func newLinter(t *testing.T) *linter {
	t.Helper()
	page, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]phrase)
	for words, instead := range docs.Avoided(string(page)) {
		all[words] = phrase{"say " + instead, true}
	}
	// These also have plain uses, which no program tells apart.
	for _, words := range []string{"try", "run of it", "who may", "somebody", "fresh", "giving", "refuses", "terms", "near"} {
		if _, ok := all[words]; !ok {
			t.Errorf("the glossary does not avoid %q any more", words)
		}
		delete(all, words)
	}
	for _, rule := range []struct {
		words, instead string
		certain        bool
	}{
		{"anew", "say again, retry or restart", true},
		{"whereof,thereof,thereby,whereby,whither,whence,wherein,therein,hereof,wherefore,hitherto,of which a", "use which, where or why, or a sentence of its own", true},
		{"lies at,lie at,lay at", "say is on, or is in", true},
		{"what stands,what of it,what of them,is whose,crew,crews", "name the thing", true},
		{"whoever,whomever", "say a client that, or the job that", true},
		{"makes again,making again,make again", "say rerun, relaunch or recompute", true},
		{"foresees,foreseen", "say predict or estimate", true},
		{"nobody,somebody,anybody,everybody,whom,whose", "a program, job or file is it or which: no client, a tracker that", false},
		{"of which", "use which, or a sentence of its own", false},
		{"in turn", "say then, or one after the other", false},
		{"stands", "say is", false},
		{"wish", "say request, or job settings", false},
		{"let go,lets go", "say decommission, release or close", false},
		{"stands for,lie at least,lies at least,each of which,all of which,half of which,some of which,none of which", "", false},
	} {
		for words := range strings.SplitSeq(rule.words, ",") {
			all[words] = phrase{rule.instead, rule.certain}
		}
	}
	words := slices.Sorted(maps.Keys(all))
	slices.Reverse(words) // of two that begin alike the longer one is tried first
	return &linter{all, regexp.MustCompile(`(?i)\b(` + strings.ReplaceAll(strings.Join(words, "|"), " ", `\s{1,4}`) + `)\b`)}
}

// lint lists what is found in a text.
func (l *linter) lint(p prose) (all []finding) {
	text := target.ReplaceAllString(blank(code, p.text), "")
	add := func(at int, found, instead string, certain bool) {
		all = append(all, finding{p.line + strings.Count(text[:at], "\n"), found, certain, instead})
	}
	from := 0
	for _, stop := range end.FindAllStringSubmatchIndex(text, -1) {
		s := strings.TrimLeft(text[from:max(stop[0], stop[3])], " \n\t")
		at := max(stop[0], stop[3]) - len(s)
		words := strings.Fields(s)
		start := strings.Join(words[:min(5, len(words))], " ") + " …"
		if n := len(words); p.page && n > maxWords {
			add(at, start, fmt.Sprintf("%d words, at most %d: split the sentence", n, maxWords), true)
		}
		if len(words) > 0 && (words[0] == "What" || words[0] == "Who") && strings.HasSuffix(s, ".") {
			add(at, start, "name the thing: a clause as subject is hard to read", false)
		}
		from = stop[1]
	}
	text = blank(quoted, text)
	for _, at := range l.expr.FindAllStringIndex(text, -1) {
		found := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
		if known := l.phrases[strings.ToLower(found)]; known.instead != "" && !inName.MatchString(text[max(0, at[0]-1):at[0]]+"\x00"+text[at[1]:min(len(text), at[1]+2)]) {
			add(at[0], found, known.instead, known.certain)
		}
	}
	return all
}

// ceilings is how many refused and counted findings each package or page may have.
type ceilings map[string][2]int

const table = "testdata/ceilings.txt"

func readCeilings(t *testing.T) ceilings {
	t.Helper()
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	all := make(ceilings)
	for line := range strings.Lines(string(text)) {
		var owner string
		var may [2]int
		if _, err := fmt.Sscan(line, &may[0], &may[1], &owner); err != nil {
			t.Fatalf("%s: %q: %v", table, line, err)
		}
		all[owner] = may
	}
	return all
}

// lower writes the table with ceilings that are no higher than what there is now.
func (c ceilings) lower(t *testing.T, now ceilings) {
	t.Helper()
	var text []byte
	for _, owner := range slices.Sorted(maps.Keys(c)) {
		c[owner] = [2]int{min(c[owner][0], now[owner][0]), min(c[owner][1], now[owner][1])}
		if c[owner] != [2]int{} {
			text = fmt.Appendf(text, "%3d %3d %s\n", c[owner][0], c[owner][1], owner)
		}
	}
	if err := os.WriteFile(table, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEnglish holds comments, messages and pages to the words and shapes that readers
// understand at once. Each package or page may have as many findings as the table says:
// refused ones, and counted ones. Lower its ceilings with -rewrite; raise one by hand, and
// tell why. With -v all findings are listed.
func TestEnglish(t *testing.T) {
	allowed := map[[2]string]string{ // file and words, the reason
		{"docs/glossary.md", ""}: "it lists the words",
	}
	l, used := newLinter(t), make(map[[2]string]bool)
	now, lists := make(ceilings), []map[string]string{{}, {}} // both by owner
	for _, p := range proseOf(t) {
		for _, f := range l.lint(p) {
			file, phrase := [2]string{p.file}, [2]string{p.file, f.found}
			if used[file], used[phrase] = true, true; allowed[file]+allowed[phrase] != "" {
				continue
			}
			n, kind := now[p.owner], 1
			if f.certain {
				kind = 0
			}
			n[kind]++
			now[p.owner] = n
			lists[kind][p.owner] += fmt.Sprintf("\n%s:%v: %s", p.file, f, f.instead)
		}
	}
	for a := range allowed {
		if !used[a] {
			t.Errorf("the allowance %q is needed no more", a)
		}
	}
	may := readCeilings(t)
	if *rewrite {
		may.lower(t, now)
	}
	for _, owner := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(may)), maps.Keys(now))))) {
		if testing.Verbose() {
			t.Log(owner + lists[0][owner] + lists[1][owner])
		}
		for i, kind := range []string{"refused", "counted"} {
			if n, ceiling := now[owner][i], may[owner][i]; n > ceiling {
				t.Errorf("%s has %d %s findings, and may have %d:%s", owner, n, kind, ceiling, lists[i][owner])
			} else if n < ceiling {
				t.Errorf("%s has %d %s findings, and may have %d: lower that by go test ./internal/lint -run TestEnglish -rewrite", owner, n, kind, ceiling)
			}
		}
	}
}

// TestFindings: what is refused, what is counted, and what is plain.
func TestFindings(t *testing.T) {
	l := newLinter(t)
	long := strings.Repeat("word ", maxWords)
	for text, want := range map[string][]string{
		"The map is run anew.":                              {`1: refused "run anew"`},
		"It begins\nAnew, the gift is\nwhat  stands\nthere": {`2: refused "Anew"`, `2: refused "gift"`, `3: refused "what stands"`},
		"A party takes\n office.":                           {`1: refused "party"`, `1: refused "takes office"`},
		"Nobody reads what stands":                          {`1: counted "Nobody"`, `1: refused "what stands"`},
		"A job whose input it is, one of which ends":        {`1: counted "whose"`, `1: counted "of which"`},
		"It ends. What\nit had is lost. Now":                {`1: counted "What it had is lost. …"`},
		"It stands in turn":                                 {`1: counted "stands"`, `1: counted "in turn"`},
		"```\nanew\n```\nleavings":                          {`4: refused "leavings"`},
		"[leavings](anew.md) {{.anew whose}} <!-- anew -->": {`1: refused "leavings"`},
		"- " + long + "\n- `one two` " + long:               {`2: refused "_ word word word word …"`},
		"Short. " + long + "more.":                          {`1: refused "word word word word word …"`},

		"# " + long + "more\n\n" + long:                                                       nil,
		"| " + long + "| " + long + "|":                                                       nil,
		"What is lost? | What it is |":                                                        nil,
		"A letter stands for a word, each of which lies at least there":                       nil,
		"The terms of a renewal of offices; fresh air is near":                                nil,
		"say \"anew\" or “leavings”":                                                          nil,
		"`anew`, [anew], x.anew, anew.x, anew(), sub/anew, anew_x, http://example.org/anew?x": nil,
	} {
		if got := fmt.Sprint(l.lint(prose{text: text, line: 1, page: true})); got != fmt.Sprint(want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestProseOfSource: comments and messages are read, and code is not.
func TestProseOfSource(t *testing.T) {
	const text = `// Package x runs
// leavings.
package x
import _ "office/of nobody"

// office does it, and office is a word.
//
//	code anew
//
//go:generate anew and whoever
func office(whose int) error { // gift
	/* it begins
	anew */
	return errors.New("no such\n" + "gift: it begins anew")
}

type y struct {
	leavings string ` + "`json:\"whoever is\"`" + `
	B        string // whence
}
var anew, z = "anew", ` + "`Usage:\n  nobody`" + `
`
	file := filepath.Join(t.TempDir(), "x.go")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	l, s := newLinter(t), parse(t, &pkg{Dir: filepath.Dir(file)}, "x.go")
	for test, want := range map[bool]string{
		true:  `[2: refused "leavings" 6: refused "office" 11: refused "gift" 13: refused "anew" 19: refused "whence"]`,
		false: `[2: refused "leavings" 6: refused "office" 11: refused "gift" 13: refused "anew" 14: refused "gift" 14: refused "anew" 19: refused "whence" 22: counted "nobody"]`,
	} {
		var got []finding
		for _, p := range s.prose("x", test) {
			got = append(got, l.lint(p)...)
		}
		slices.SortStableFunc(got, func(a, b finding) int { return a.line - b.line })
		if fmt.Sprint(got) != want {
			t.Errorf("test %v: %s, want %s", test, got, want)
		}
	}
}
