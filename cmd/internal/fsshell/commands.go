package fsshell

import (
	"fmt"
	"strings"
)

// commands returns the table of commands.
func commands() []command {
	threads := []string{"t", "q"}
	return []command{
		{name: "appendToFile", usage: "[-n] <localsrc> ... <dst>", flags: []string{"n"}, run: (*call).appendToFile, summary: "append local files to a file of HDFS; - is standard input"},
		{name: "cat", usage: "[-ignoreCrc] <src> ...", flags: []string{"ignoreCrc"}, min: 1, run: (*call).cat, summary: "print files as they are"},
		{name: "checksum", usage: "[-v] <src> ...", flags: []string{"v"}, min: 1, run: (*call).checksum, summary: "print checksums of files of HDFS"},
		{name: "chgrp", usage: "[-R] GROUP PATH...", flags: []string{"R"}, min: 2, run: (*call).chgrp, summary: "change groups"},
		{name: "chmod", usage: "[-R] <MODE[,MODE]... | OCTALMODE> PATH...", flags: []string{"R"}, min: 2, run: (*call).chmod, summary: "change permissions"},
		{name: "chown", usage: "[-R] [OWNER][:[GROUP]] PATH...", flags: []string{"R"}, min: 2, run: (*call).chown, summary: "change owners and groups"},
		{name: "copyFromLocal", usage: "[-f] [-p] [-d] <localsrc> ... <dst>", flags: []string{"f", "p", "d"}, refused: append([]string{"l"}, threads...), min: 1, run: (*call).put, summary: "the same as -put"},
		{name: "copyToLocal", usage: "[-f] [-p] [-ignoreCrc] <src> ... <localdst>", flags: []string{"f", "p", "ignoreCrc"}, refused: append([]string{"crc"}, threads...), min: 1, run: (*call).get, summary: "the same as -get"},
		{name: "count", usage: "[-q] [-h] [-v] [-u] [-x] <path> ...", flags: []string{"q", "h", "v", "u", "x"}, refused: []string{"t", "e", "s"}, min: 1, run: (*call).count, summary: "count directories, files and bytes"},
		{name: "cp", usage: "[-f] [-p | -p[top]] [-d] <src> ... <dst>", flags: []string{"f", "p", "d"}, refused: threads, min: 2, run: (*call).cp, summary: "copy files and directories"},
		{name: "df", usage: "[-h] [<path> ...]", flags: []string{"h"}, run: (*call).df, summary: "show the space of file systems"},
		{name: "du", usage: "[-s] [-h] [-v] [-x] <path> ...", flags: []string{"s", "h", "v", "x"}, run: (*call).du, summary: "show the space that files and directories use"},
		{name: "dus", usage: "<path> ...", flags: []string{"s", "h", "v", "x"}, instead: "du -s", run: summed, summary: "the same as -du -s"},
		{name: "expunge", usage: "[-immediate] [-fs <path>]", flags: []string{"immediate"}, values: []string{"fs"}, run: (*call).expunge, summary: "remove old files from the trash, or all"},
		{name: "find", usage: "<path> ... <expression> ...", flags: []string{"L", "H"}, min: 1, run: (*call).find, summary: "find files by name: -name, -iname, -print, -print0, -and"},
		{name: "get", usage: "[-f] [-p] [-ignoreCrc] <src> ... <localdst>", flags: []string{"f", "p", "ignoreCrc"}, refused: append([]string{"crc"}, threads...), min: 1, run: (*call).get, summary: "copy to the local file system"},
		{name: "getmerge", usage: "[-nl] [-skip-empty-file] <src> <localdst>", flags: []string{"nl", "skip-empty-file"}, min: 2, run: (*call).getMerge, summary: "join files in one local file"},
		{name: "head", usage: "<file>", min: 1, max: 1, run: (*call).head, summary: "print the first kilobyte of a file"},
		{name: "ls", usage: "[-C] [-d] [-h] [-q] [-R] [-t] [-S] [-r] [-u] [<path> ...]", flags: []string{"C", "d", "h", "q", "R", "t", "S", "r", "u"}, refused: []string{"e"}, run: (*call).ls, summary: "list files and directories"},
		{name: "lsr", usage: "[<path> ...]", flags: []string{"C", "d", "h", "q", "t", "S", "r", "u"}, instead: "ls -R", run: recursed, summary: "the same as -ls -R"},
		{name: "mkdir", usage: "[-p] <path> ...", flags: []string{"p"}, min: 1, run: (*call).mkdir, summary: "make directories"},
		{name: "moveFromLocal", usage: "[-f] [-p] [-d] <localsrc> ... <dst>", flags: []string{"f", "p", "d"}, refused: append([]string{"l"}, threads...), min: 1, run: (*call).moveFromLocal, summary: "the same as -put, then remove the sources"},
		{name: "mv", usage: "<src> ... <dst>", min: 2, run: (*call).mv, summary: "rename files and directories within a file system"},
		{name: "put", usage: "[-f] [-p] [-d] <localsrc> ... <dst>", flags: []string{"f", "p", "d"}, refused: append([]string{"l"}, threads...), min: 1, run: (*call).put, summary: "copy from the local file system; - is standard input"},
		{name: "rm", usage: "[-f] [-r|-R] [-skipTrash] <src> ...", flags: []string{"f", "r", "R", "skipTrash"}, refused: []string{"safely"}, min: 1, run: (*call).rm, summary: "remove files and directories"},
		{name: "rmdir", usage: "[--ignore-fail-on-non-empty] <dir> ...", flags: []string{"-ignore-fail-on-non-empty"}, min: 1, run: (*call).rmdir, summary: "remove empty directories"},
		{name: "rmr", usage: "<src> ...", flags: []string{"f", "skipTrash"}, instead: "-rm -r", min: 1, run: removed, summary: "the same as -rm -r"},
		{name: "setrep", usage: "[-R] [-w] <rep> <path> ...", flags: []string{"R", "w"}, min: 2, run: (*call).setrep, summary: "set the number of replicas of files"},
		{name: "stat", usage: "[format] <path> ...", min: 1, run: (*call).stat, summary: "print attributes of files and directories"},
		{name: "tail", usage: "[-f] [-s <sleep interval>] <file>", flags: []string{"f"}, values: []string{"s"}, min: 1, max: 1, run: (*call).tail, summary: "print the last kilobyte of a file; -f goes on as it grows"},
		{name: "test", usage: "-[defswrz] <path>", flags: []string{"d", "e", "f", "s", "w", "r", "z"}, min: 1, max: 1, run: (*call).test, summary: "answer a question about a path with the exit code"},
		{name: "text", usage: "[-ignoreCrc] <src> ...", flags: []string{"ignoreCrc"}, min: 1, run: (*call).text, summary: "print files decoded: every codec, SequenceFiles, Avro and Parquet"},
		{name: "touch", usage: "[-a] [-m] [-t TIMESTAMP (yyyyMMdd:HHmmss) ] [-c] <path> ...", flags: []string{"a", "m", "c"}, values: []string{"t"}, min: 1, run: (*call).touch, summary: "make files, or set their times"},
		{name: "touchz", usage: "<path> ...", min: 1, run: (*call).touchz, summary: "make empty files"},
		{name: "truncate", usage: "[-w] <length> <path> ...", flags: []string{"w"}, min: 2, run: (*call).truncate, summary: "shorten files of HDFS"},
	}
}

// Names returns the commands' names, each with its dash, and what it does.
func Names() (names, summaries []string) {
	for _, c := range commands() {
		names, summaries = append(names, "-"+c.name), append(summaries, c.summary)
	}
	return names, summaries
}

// Flags returns the options of a command like "-ls", each with its dash.
func Flags(name string) (flags []string) {
	if c := find(name); c != nil {
		for _, f := range append(c.flags, c.values...) {
			flags = append(flags, "-"+f)
		}
	}
	return flags
}

// Usage lists the commands with their options, a line each.
func Usage() string {
	var b strings.Builder
	for _, c := range commands() {
		if c.instead == "" {
			fmt.Fprintf(&b, "  %-70s  %s\n", strings.TrimSpace("-"+c.name+" "+c.usage), c.summary)
		}
	}
	return b.String()
}

// with returns a command with an option that it always has.
func with(flag string, run func(*call, []string) error) func(*call, []string) error {
	return func(r *call, args []string) error {
		r.flag[flag] = true
		return run(r, args)
	}
}

var (
	summed   = with("s", (*call).du)
	recursed = with("R", (*call).ls)
	removed  = with("r", (*call).rm)
)
