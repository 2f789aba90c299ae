package main

import (
	"context"
	"flag"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/cmd/internal/fsshell"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/mapreduce/streaming"
)

// fsHelp is a function because it lists the commands.
func fsHelp() string {
	return `Lists, prints, copies and removes files, with the commands, options, output and exit codes of
hadoop fs. PATH may be a pattern. A PATH without a scheme is local, or in the file system of -fs;
HDFS is as Hadoop's configuration says. No job tracker is needed. The commands:

` + fsshell.Usage()
}

// fs runs a command of Hadoop's file system shell.
func (t *tool) fs(ctx context.Context, args []string) int {
	set := newFlags("fs")
	s := fsshell.Shell{Program: "mrsubmit fs", Stdin: t.stdin, Stdout: t.stdout, Stderr: &client.VisibleWriter{To: t.stderr}, Location: time.Local}
	set.StringVar(&s.Default, "fs", "", "`URL` of the file system of paths without a scheme; comes before the command")
	args, err := t.generic(set, args)
	if err != nil {
		return t.exitCode("fs", set, err)
	}
	if s.Default, err = dfs.CleanDefault(s.Default); err != nil {
		return t.exitCode("fs", set, usagef("-fs: %v", err))
	}
	s.Files = fsshell.FileSystems(hdfs.Environment)
	code, err := s.Run(ctx, args)
	if err != nil {
		return t.exitCode("fs", set, err)
	}
	return code
}

// generic takes Hadoop's generic options, which come before the command.
func (t *tool) generic(set *flag.FlagSet, args []string) ([]string, error) {
	own := 0
	switch {
	case t.inspect != nil || len(args) == 0:
	case strings.HasPrefix(args[0], "-fs="):
		own = 1
	case args[0] == "-fs":
		own = min(2, len(args))
	case len(args) == 1 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]):
		return nil, flag.ErrHelp
	case streaming.IsGeneric(args[0]):
		return nil, usagef("option %s of hadoop fs is not supported", args[0])
	}
	if _, err := t.parse(set, args[:own], anyNumber); err != nil {
		return nil, err
	}
	if args = args[own:]; len(args) == 0 {
		return nil, usagef("which command? They begin with a dash, as -ls")
	}
	return args, nil
}

// completeFS completes commands, their options, and names of files.
func completeFS(before []string) (list []choice) {
	switch {
	case len(before) == 1 && before[0] == "-fs":
		return nil // a URL
	case len(before) > 0 && before[0] == "-fs":
		before = before[2:]
	case len(before) > 0 && strings.HasPrefix(before[0], "-fs="):
		before = before[1:]
	}
	if len(before) == 0 {
		names, summaries := fsshell.Names()
		for i, name := range names {
			list = append(list, choice{name, summaries[i]})
		}
		return append(list, choice{"-fs", "file system of paths without a scheme"})
	}
	return append(plain(fsshell.Flags(before[0])), filesWanted...)
}
