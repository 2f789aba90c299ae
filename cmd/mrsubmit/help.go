package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quernmr/quern/internal/spelling"
)

// otherNames maps words of Hadoop, YARN, Nomad and kubectl to the command that does this here.
func otherNames() map[string]string {
	return map[string]string{
		"jar": "run", "submit": "run", "job": "list", "jobs": "list", "ps": "list", "application": "list", "describe": "status", "get": "status",
		"stop": "kill", "cancel": "kill", "alloc": "attempts", "monitor": "wait", "text": "fs -text", "dfs": "fs", "hdfs": "fs", "node": "cluster", "nodes": "cluster",
		"server": "cluster", "scheduler": "cluster scheduler", "drain": "cluster drain", "certs": "cluster certs", "priority": "set", "move": "set",
	}
}

// meant returns " (did you mean …?)" for an unknown command, or "".
func meant(name string) string {
	if command := otherNames()[strings.TrimLeft(name, "-")]; command != "" {
		return " (did you mean " + command + "?)"
	}
	return spelling.DidYouMean("", name, names(commands()))
}

// help prints the list of commands, or one command's own help.
func (t *tool) help(ctx context.Context, args []string) int {
	if len(args) == 0 || slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		t.usage(t.stdout)
		return exitDone
	}
	return t.main(ctx, append(slices.Clone(args), "-h"))
}

func (t *tool) usage(w io.Writer) {
	fmt.Fprint(w, "mrsubmit runs MapReduce jobs written in Go.\n\nusage: mrsubmit COMMAND [flags] [arguments]\n")
	group := ""
	for _, c := range commands() {
		if c.group != group {
			group = c.group
			fmt.Fprintf(w, "\n%s:\n", group)
		}
		fmt.Fprintf(w, "  %-12s  %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, `
mrsubmit COMMAND -h explains a command, with examples. mrsubmit -version prints the version.

-jobtracker HOST:PORT,… or QUERN_JOBTRACKER names the job trackers of the cluster. Without
them, run uses an embedded cluster on this machine:

  mrsubmit run ./examples/wordcount -input README.md -output /tmp/wc
`)
}

func (t *tool) commandHelp(name string, set *flag.FlagSet) {
	c := find(append(commands(), clusterCommands()...), name)
	fmt.Fprintf(t.stdout, "usage: mrsubmit %s %s\n\n", name, c.synopsis)
	fmt.Fprintf(t.stdout, "%s%s.\n\n", strings.ToUpper(c.summary[:1]), c.summary[1:])
	if c.help != "" {
		fmt.Fprintf(t.stdout, "%s\n\n", strings.TrimSpace(c.help))
	}
	for i, example := range c.examples {
		if i == 0 {
			fmt.Fprint(t.stdout, "Examples:\n\n")
		}
		fmt.Fprintf(t.stdout, "  mrsubmit %s\n", example)
	}
	fmt.Fprint(t.stdout, "\nFlags:\n\n")
	set.SetOutput(t.stdout)
	set.PrintDefaults()
}
