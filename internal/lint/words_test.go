package lint

import (
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

// finding is a word or a shape that is hard to read.
type finding struct {
	line   int
	found  string
	advice string
}

func (f finding) String() string { return fmt.Sprintf("%d: %q", f.line, f.found) }

const maxWords = 35 // of a sentence on a page

// linter finds phrases with one regular expression.
type linter struct {
	advice map[string]string // by phrase; empty: the phrase is plain, although a shorter one in it is not
	expr   *regexp.Regexp
}

// newLinter returns a linter for the glossary's column "Not" and the phrases listed here.
func newLinter(t *testing.T) *linter {
	t.Helper()
	page, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for words, instead := range docs.Avoided(string(page)) {
		all[words] = "say " + instead
	}
	// These also have plain uses, which a program cannot distinguish.
	for _, words := range []string{"try", "run of it", "who may", "somebody", "fresh", "giving", "refuses", "terms", "near"} {
		if _, ok := all[words]; !ok {
			t.Errorf("the glossary does not avoid %q any more", words)
		}
		delete(all, words)
	}
	for _, rule := range []struct{ words, instead string }{
		{"anew", "say again, retry or restart"},
		{"whereof,thereof,thereby,whereby,whither,whence,wherein,therein,hereof,wherefore,hitherto,of which a", "use which, where or why, or a sentence of its own"},
		{"lies at,lie at,lay at", "say is on, or is in"},
		{"what stands,what of it,what of them,is whose,crew,crews", "name the thing"},
		{"whoever,whomever", "say a client that, or the job that"},
		{"makes again,making again,make again", "say rerun, relaunch or recompute"},
		{"foresees,foreseen", "say predict or estimate"},
		{"nobody,somebody,anybody,everybody,whom,whose", "a program, job or file is it or which: no client, a tracker that"},
		{"of which", "use which, or a sentence of its own"},
		{"in turn", "say then, or one after the other"},
		{"stands", "say is"},
		{"wish", "say request, or job settings"},
		{"let go,lets go", "say decommission, release or close"},
		{"stands for,lie at least,lies at least,each of which,all of which,half of which,some of which,none of which", ""},
	} {
		for words := range strings.SplitSeq(rule.words, ",") {
			all[words] = rule.instead
		}
	}
	words := slices.Sorted(maps.Keys(all))
	slices.Reverse(words) // the expression must try a longer phrase before its beginning
	return &linter{all, regexp.MustCompile(`(?i)\b(` + strings.ReplaceAll(strings.Join(words, "|"), " ", `\s{1,4}`) + `)\b`)}
}

// lint lists the findings in a text.
func (l *linter) lint(p prose) (all []finding) {
	text := target.ReplaceAllString(blank(code, p.text), "")
	add := func(at int, found, advice string) {
		all = append(all, finding{p.line + strings.Count(text[:at], "\n"), found, advice})
	}
	from := 0
	for _, stop := range end.FindAllStringSubmatchIndex(text, -1) {
		s := strings.TrimLeft(text[from:max(stop[0], stop[3])], " \n\t")
		at := max(stop[0], stop[3]) - len(s)
		words := strings.Fields(s)
		start := strings.Join(words[:min(5, len(words))], " ") + " …"
		if n := len(words); p.page && n > maxWords {
			add(at, start, fmt.Sprintf("%d words, at most %d: split the sentence", n, maxWords))
		}
		if len(words) > 0 && (words[0] == "What" || words[0] == "Who") && strings.HasSuffix(s, ".") {
			add(at, start, "name the thing: a clause as subject is hard to read")
		}
		from = stop[1]
	}
	text = blank(quoted, text)
	for _, at := range l.expr.FindAllStringIndex(text, -1) {
		found := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
		if advice := l.advice[strings.ToLower(found)]; advice != "" && !besideName.MatchString(text[max(0, at[0]-1):at[0]]+"\x00"+text[at[1]:min(len(text), at[1]+2)]) {
			add(at[0], found, advice)
		}
	}
	return all
}

// TestEnglish refuses words and shapes in comments, messages and pages that are hard to read.
func TestEnglish(t *testing.T) {
	allowed := map[[2]string]string{ // file and words, the reason
		{"docs/glossary.md", ""}: "it lists the words",
	}
	l, used := newLinter(t), make(map[[2]string]bool)
	for _, p := range proseOf(t) {
		for _, f := range l.lint(p) {
			file, phrase := [2]string{p.file}, [2]string{p.file, f.found}
			if used[file], used[phrase] = true, true; allowed[file]+allowed[phrase] == "" {
				t.Errorf("%s:%v: %s", p.file, f, f.advice)
			}
		}
	}
	for a := range allowed {
		if !used[a] {
			t.Errorf("the exception %q is not needed any more", a)
		}
	}
}

// TestFindings: the linter refuses these words, and accepts plain ones.
func TestFindings(t *testing.T) {
	l := newLinter(t)
	long := strings.Repeat("word ", maxWords)
	for text, want := range map[string][]string{
		"The map is run anew.":                              {`1: "run anew"`},
		"It begins\nAnew, the gift is\nwhat  stands\nthere": {`2: "Anew"`, `2: "gift"`, `3: "what stands"`},
		"A party takes\n office.":                           {`1: "party"`, `1: "takes office"`},
		"Nobody reads what stands":                          {`1: "Nobody"`, `1: "what stands"`},
		"A job whose input it is, one of which ends":        {`1: "whose"`, `1: "of which"`},
		"It ends. What\nit had is lost. Now":                {`1: "What it had is lost. …"`},
		"It stands in turn":                                 {`1: "stands"`, `1: "in turn"`},
		"```\nanew\n```\nleavings":                          {`4: "leavings"`},
		"[leavings](anew.md) {{.anew whose}} <!-- anew -->": {`1: "leavings"`},
		"- " + long + "\n- `one two` " + long:               {`2: "_ word word word word …"`},
		"Short. " + long + "more.":                          {`1: "word word word word word …"`},

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

// TestProseOfSource: the linter reads comments and messages, not code.
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
		true:  `[2: "leavings" 6: "office" 11: "gift" 13: "anew" 19: "whence"]`,
		false: `[2: "leavings" 6: "office" 11: "gift" 13: "anew" 14: "gift" 14: "anew" 19: "whence" 22: "nobody"]`,
	} {
		var got []finding
		for _, p := range s.prose(test) {
			got = append(got, l.lint(p)...)
		}
		slices.SortStableFunc(got, func(a, b finding) int { return a.line - b.line })
		if fmt.Sprint(got) != want {
			t.Errorf("test %v: %s, want %s", test, got, want)
		}
	}
}
