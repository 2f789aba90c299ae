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

// TestUnwrittenToken: a token that could not be written is written when it is set
// again.
func TestUnwrittenToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), Dir)
	tokens, err := Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file instead of the directory
		t.Fatal(err)
	}
	if changed := tokens.Set(job1, "token"); !changed || tokens.Save(job1) == nil {
		t.Fatal("Save succeeded without a directory")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if changed := tokens.Set(job1, "token"); !changed {
		t.Error("the next Set does not ask for Save")
	}
	if err := tokens.Save(job1); err != nil {
		t.Fatal(err)
	}
	if text, err := readToken(filepath.Join(dir, job1.String())); text != "token" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if tokens.Set(job1, "token") {
		t.Error("Set asks for Save of a token that is written")
	}
}

// TestTokenFiles: only a complete file has a token.
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
			t.Errorf("file %.100q gives token %.100q", content, got)
		}
	}
	// Not even root can read a directory as a file.
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
			t.Errorf("files %q, want %q", got, want)
		}
	}
}

// TestDelayedFileOperations sets, ends and forgets tokens, with delayed file operations. A
// token that was set again is not forgotten, and at the end the files match the tokens.
func TestDelayedFileOperations(t *testing.T) {
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
		type tokenUse struct{ text, at int } // a token, and the time of its Set; 0: none
		var (
			want     [4]tokenUse // by job, from 1
			fileWork []func()
			clock    int
		)
		do := func() {
			fileWork[0]()
			fileWork = fileWork[1:]
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				clock++
				n, text := rapid.IntRange(1, 3).Draw(t, "job"), rapid.IntRange(1, 2).Draw(t, "text")
				want[n] = tokenUse{text, clock}
				if tokens.Set(jobN(n), fmt.Sprint("token", text)) {
					fileWork = append(fileWork, func() { must(t, tokens.Save(jobN(n))) })
				}
			},
			"forget": func(t *rapid.T) {
				n, since := rapid.IntRange(1, 3).Draw(t, "job"), clock
				version := 0
				if rapid.Bool().Draw(t, "dropped") {
					version = tokens.EndJob(jobN(n))
				} else {
					version = tokens.Versions()[jobN(n)]
				}
				fileWork = append(fileWork, func() {
					must(t, tokens.Forget(jobN(n), version))
					if want[n].at <= since {
						want[n] = tokenUse{}
					}
				})
			},
			"file": func(t *rapid.T) {
				if len(fileWork) > 0 {
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
		for len(fileWork) > 0 {
			do()
		}
		later, err := Open(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n < len(want); n++ {
			if got, want := later.Get(jobN(n)), tokens.Get(jobN(n)); got != want {
				t.Fatalf("job %d has %q in a later process, want %q", n, got, want)
			}
		}
	})
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}
