package main

import (
	"cmp"
	"context"
	"embed"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
)

// completeCommand is the hidden command that shells call with the words of the command line up to the
// one that is completed, after "split" if the shell splits words at "=" and ":", or "whole". It prints
// a line for each choice: the text, a tab and its meaning. The line ":files" asks the shell for names
// of files.
const completeCommand = "__complete"

// completePatience limits the time that a completion waits for the cluster. Tests raise it.
var completePatience = time.Second

const completionHelp = `Prints a script with which the shell completes commands, flags and their values, and asks the
cluster for jobs, task trackers and pools. To load it:

  bash:  source <(mrsubmit completion bash)    in ~/.bashrc
  zsh:   source <(mrsubmit completion zsh)     in ~/.zshrc, after compinit
  fish:  mrsubmit completion fish | source     in ~/.config/fish/config.fish`

//go:embed completion
var scripts embed.FS

// shells lists the shells that have a script.
func shells() (names []string) {
	files, _ := scripts.ReadDir("completion") // embedded: it cannot fail
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// completion prints the script for a shell.
func (t *tool) completion(_ context.Context, args []string) int {
	set := newFlags("completion")
	rest, err := t.parse(set, args, anyNumber)
	switch {
	case err != nil:
	case len(rest) != 1 || !slices.Contains(shells(), rest[0]):
		err = usagef("want one of %s", strings.Join(shells(), ", "))
	default:
		var script []byte
		if script, err = scripts.ReadFile("completion/" + rest[0]); err == nil {
			_, err = t.stdout.Write(script)
		}
	}
	return t.exitCode("completion", set, err)
}

// choice is a text that a word can become, and its meaning.
type choice struct{ text, meaning string }

// filesWanted asks the shell for names of files.
var filesWanted = []choice{{text: ":files"}}

// candidate lists the choices for a word.
type candidate func(ctx context.Context, l *line) []choice

// line is a command line up to the word that is completed.
type line struct {
	*tool
	flags *flag.FlagSet // with the values so far
	args  []string      // arguments that are not flags
	word  string        // the beginning of the word
}

// complete prints the choices for the last word.
func (t *tool) complete(ctx context.Context, args []string) int {
	if len(args) < 2 {
		return exitUsage
	}
	words, kept := args[1:], 0
	if args[0] == "split" {
		words, kept = joinWords(words)
	}
	last := words[len(words)-1]
	for _, c := range t.choices(ctx, words[:len(words)-1], last) {
		if c.text == filesWanted[0].text || strings.HasPrefix(c.text, last) && client.OneLine(c.text) == c.text {
			fmt.Fprintf(t.stdout, "%s\t%s\n", c.text[min(kept, len(c.text)):], client.OneLine(c.meaning))
		}
	}
	return exitDone
}

// joinWords joins words that bash splits at "=" and ":". Of the last word, bash replaces only what
// comes after the first kept bytes.
func joinWords(words []string) (joined []string, kept int) {
	glue := false
	for i, w := range words {
		breaks := w != "" && strings.Trim(w, "=:") == ""
		if i > 0 && (breaks || glue) {
			joined[len(joined)-1] += w
		} else {
			joined = append(joined, w)
		}
		glue = breaks
	}
	return joined, 1 + strings.LastIndexAny(joined[len(joined)-1], "=:")
}

// choices lists what the word after the words before it can be.
func (t *tool) choices(ctx context.Context, before []string, word string) []choice {
	if len(before) > 0 && before[0] == "help" {
		before = before[1:]
		if len(before) > 1 || len(before) == 1 && before[0] != "cluster" {
			return nil
		}
	}
	if len(before) == 0 {
		return append(commandChoices(commands()), choice{"help", "explain a command"})
	}
	c, before := find(commands(), before[0]), before[1:]
	if c != nil && c.name == "cluster" {
		if len(before) == 0 && !strings.HasPrefix(word, "-") {
			return commandChoices(clusterCommands())
		}
		if len(before) > 0 && !strings.HasPrefix(before[0], "-") {
			c, before = find(clusterCommands(), "cluster "+before[0]), before[1:]
		}
	}
	if c == nil {
		return nil
	}
	if c.complete != nil {
		return c.complete(before)
	}
	l := &line{tool: t, word: word}
	inspector := *t
	inspector.inspect = func(set *flag.FlagSet) { l.flags = set }
	c.execute(&inspector, ctx, nil)
	return l.choices(ctx, c, before)
}

func commandChoices(all []command) (list []choice) {
	for _, c := range all {
		list = append(list, choice{strings.TrimPrefix(c.name, "cluster "), c.summary})
	}
	return list
}

// choices lists what the word of a command can be, after the words before it.
func (l *line) choices(ctx context.Context, c *command, before []string) []choice {
	for i := 0; i < len(before); i++ {
		name, isFlag := strings.CutPrefix(before[i], "-")
		if !isFlag || name == "" {
			if l.args = append(l.args, before[i]); c.name == "run" {
				return filesWanted // arguments of the job
			}
			continue
		}
		name, value, given := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		f := l.flags.Lookup(name)
		switch {
		case f == nil:
			continue
		case isBool(f):
			value = cmp.Or(value, "true")
		case !given:
			if i++; i == len(before) {
				return l.values(ctx, name, "")
			}
			value = before[i]
		}
		_ = f.Value.Set(value) // a wrong one does not count
	}
	if name, isFlag := strings.CutPrefix(l.word, "-"); isFlag {
		if name, value, given := strings.Cut(strings.TrimPrefix(name, "-"), "="); given {
			return l.values(ctx, name, strings.TrimSuffix(l.word, value))
		}
		return l.flagChoices()
	}
	if len(c.words) == 0 || c.query != nil && len(l.args) >= c.max {
		return nil
	}
	return c.words[min(len(l.args), len(c.words)-1)](ctx, l)
}

// values lists the values of a flag, each with a beginning of the word before it.
func (l *line) values(ctx context.Context, name, begin string) (list []choice) {
	of := valuesOf()[name]
	if of == nil {
		return nil
	}
	value := l.word[len(begin):]
	if name == "state" {
		begin += value[:1+strings.LastIndexByte(value, ',')]
	}
	for _, c := range of(ctx, l) {
		if c.text != filesWanted[0].text {
			c.text = begin + c.text
		}
		list = append(list, c)
	}
	return list
}

// flagChoices lists the flags. Those of any number of dashes are the same.
func (l *line) flagChoices() (list []choice) {
	dashes := "-"
	if strings.HasPrefix(l.word, "--") {
		dashes = "--"
	}
	l.flags.VisitAll(func(f *flag.Flag) {
		_, usage := flag.UnquoteUsage(f)
		usage, _, _ = strings.Cut(usage, "; ")
		list = append(list, choice{dashes + f.Name, usage})
	})
	return list
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// ask calls do with a client of the cluster that the flags name, if they name one.
func (l *line) ask(ctx context.Context, do func(ctx context.Context, q *query)) {
	quiet := *l.tool
	quiet.stderr = io.Discard
	q := &query{tool: &quiet, flags: l.flags, addresses: l.flag("jobtracker"), security: security{l.flag("tls-dir"), l.flag("insecure") == "true"}}
	if q.connect() != nil {
		return
	}
	defer q.cluster.Close()
	q.cluster.Patience = completePatience
	ctx, cancel := context.WithTimeout(ctx, completePatience)
	defer cancel()
	do(ctx, q)
}

// flag returns the value of a flag, or "".
func (l *line) flag(name string) string {
	if f := l.flags.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}
