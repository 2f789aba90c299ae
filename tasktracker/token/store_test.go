package token

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

func jobN(n int) wire.JobID { return wire.JobID{Start: 1, N: n} }

var job1 = jobN(1)

// TestUnkeptToken: a token that could not be written is written when it comes again.
func TestUnkeptToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), Dir)
	tokens, err := Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // where the directory would be
		t.Fatal(err)
	}
	if news := tokens.Learn(job1, "token"); !news || tokens.Keep(job1) == nil {
		t.Fatal("a token was kept where nothing can be")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if news := tokens.Learn(job1, "token"); !news {
		t.Error("the token will not be tried again")
	}
	if err := tokens.Keep(job1); err != nil {
		t.Fatal(err)
	}
	if text, err := readToken(filepath.Join(dir, job1.String())); text != "token" {
		t.Errorf("kept is %q, %v", text, err)
	}
	if tokens.Learn(job1, "token") {
		t.Error("a token that is kept is news")
	}
}

// TestTokenFiles: what is no whole token is none.
func TestTokenFiles(t *testing.T) {
	good := strings.Repeat("0123456789abcdef", 4)
	for content, want := range map[string]string{
		good + "\n":                            good,
		strings.Repeat("x", maxToken) + "\n":   strings.Repeat("x", maxToken),
		"":                                     "",
		"\n":                                   "",
		good:                                   "",
		good + "\n\n":                          "",
		good + "\n" + good + "\n":              "",
		good[:20] + "\x00\x00\x00\n":           "",
		good + "\xff\n":                        "",
		strings.Repeat("x", maxToken+1) + "\n": "",
		strings.Repeat("x", 1<<20) + "\n":      "",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, job1.String()), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		tokens, err := Open(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := tokens.Get(job1); got != want {
			t.Errorf("%.100q is taken for %.100q", content, got)
		}
	}
	// One that cannot be read at all, whoever tries.
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, job1.String(), "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{job1.String() + ".damaged"}, {}} {
		tokens, err := Open(dir, slog.New(slog.DiscardHandler))
		if err != nil || tokens.Get(job1) != "" {
			t.Errorf("%q, %v", tokens.Get(job1), err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("there are %q, want %q", got, want)
		}
	}
}

// TestTokensFollow has tokens learned, ended and forgotten, with what files are done
// late: none is forgotten that was learned since it was found to be of no use, and in
// the end files hold what is known.
func TestTokensFollow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "quern-tokens-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		tokens, err := Open(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		type use struct{ text, at int } // a token, and when it was learned; 0: it is not known
		var (
			want   [4]use // by job, from 1
			chores []func()
			clock  int
		)
		do := func() {
			chores[0]()
			chores = chores[1:]
		}
		t.Repeat(map[string]func(*rapid.T){
			"learn": func(t *rapid.T) {
				clock++
				n, text := rapid.IntRange(1, 3).Draw(t, "job"), rapid.IntRange(1, 2).Draw(t, "text")
				want[n] = use{text, clock}
				if tokens.Learn(jobN(n), fmt.Sprint("token", text)) {
					chores = append(chores, func() { must(t, tokens.Keep(jobN(n))) })
				}
			},
			"forget": func(t *rapid.T) {
				n, since := rapid.IntRange(1, 3).Draw(t, "job"), clock
				learned := 0
				if rapid.Bool().Draw(t, "dropped") {
					learned = tokens.End(jobN(n))
				} else {
					learned = tokens.Known()[jobN(n)]
				}
				chores = append(chores, func() {
					must(t, tokens.Forget(jobN(n), learned))
					if want[n].at <= since {
						want[n] = use{}
					}
				})
			},
			"chore": func(t *rapid.T) {
				if len(chores) > 0 {
					do()
				}
			},
			"": func(t *rapid.T) {
				for n, w := range want[1:] {
					n++
					text := fmt.Sprint("token", w.text)
					if w.at == 0 {
						text = ""
					}
					if got := tokens.Get(jobN(n)); got != text {
						t.Fatalf("job %d has %q, want %q", n, got, text)
					}
				}
			},
		})
		for len(chores) > 0 {
			do()
		}
		later, err := Open(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n < len(want); n++ {
			if got, want := later.Get(jobN(n)), tokens.Get(jobN(n)); got != want {
				t.Fatalf("job %d has %q later, had %q", n, got, want)
			}
		}
	})
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}
