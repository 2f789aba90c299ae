// Package fsshell has the commands of `hadoop fs`, over every file system of package dfs: [Shell.Run]. Output
// lines, messages and exit codes are Hadoop's; testdata/commands.txt has those of the real one. Deliberate differences:
//
//   - Listings of local directories are sorted, as in HDFS.
//   - After a wrong command line, only the usage of its command follows.
//   - Options and commands of Hadoop that this package lacks are refused by name.
//   - Local copies have no .crc files, so -crc is refused, and HDFS always verifies checksums, so -ignoreCrc is too
//     for HDFS.
//   - The root directory is never removed.
//   - -text prints rows of Parquet files as JSON, and refuses files that it cannot decode, by name.
//
// A path without a scheme is in the file system [Shell.Default]; a relative one there is in the user's home directory.
//
// # Names of paths in messages
//
// A path that exists is shown as Hadoop shows it: relative, if the argument was, without dots; a URL without its
// authority, if the argument had none. A path that does not exist is shown as given.
package fsshell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quernmr/quern/dfs"
)

// Shell runs commands.
type Shell struct {
	Program string // in usages: "hadoop fs"
	Files   dfs.FS

	// Default is the URL of the file system of paths without a scheme, such as hdfs://namenode:8020. If it is empty,
	// they are local.
	Default string

	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Location       *time.Location // of times in listings
}

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 255
)

// command is one of the shell's commands.
type command struct {
	name    string
	usage   string   // arguments, as Hadoop shows them
	flags   []string // options
	values  []string // options with a value
	refused []string // options of Hadoop that are not supported
	min     int      // arguments
	max     int      // 0: any number
	instead string   // what to use instead of a deprecated command
	summary string   // for the help of programs
	run     func(r *call, args []string) error
}

// call is a running command.
type call struct {
	*Shell
	*command
	ctx    context.Context
	out    *bufio.Writer
	flag   map[string]bool
	value  map[string]string
	failed bool // a message was printed
	code   int  // the exit code without one
}

// usageError is a wrong command line.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// pathError is an error of a path, as Hadoop words it.
type pathError struct{ path, reason string }

func (e *pathError) Error() string { return "`" + e.path + "': " + e.reason }

// Reasons of path errors.
const (
	notFound     = "No such file or directory"
	isDirectory  = "Is a directory"
	notDirectory = "Is not a directory"
	exists       = "File exists"
	notEmpty     = "Directory is not empty"
)

// worded is an error in Hadoop's words.
func worded(format string, args ...any) error { return fmt.Errorf(format, args...) }

// Run runs a command, such as "-ls", "/tmp", and returns its exit code. The error is one of writing to Stdout, or
// the end of ctx.
func (s *Shell) Run(ctx context.Context, args []string) (code int, err error) {
	if len(args) == 0 {
		fmt.Fprintf(s.Stderr, "Usage: %s COMMAND\n%s", s.Program, Usage())
		return exitUsage, nil
	}
	name, args := args[0], args[1:]
	c := find(name)
	if c == nil && (name == "-help" || name == "-usage") {
		return s.help(args)
	}
	if c == nil {
		return s.unknown(name), nil
	}
	r := &call{Shell: s, command: c, ctx: ctx, out: bufio.NewWriter(s.Stdout), flag: make(map[string]bool), value: make(map[string]string)}
	if c.instead != "" {
		r.warn(fmt.Sprintf("DEPRECATED: Please use '%s' instead.", c.instead))
	}
	if args, err = r.parse(args); err == nil {
		err = r.run(r, args)
	}
	var usage usageError
	switch ended := ctx.Err(); {
	case ended != nil:
		return exitFailed, context.Cause(ctx)
	case errors.As(err, &usage):
		fmt.Fprintf(s.Stderr, "%s: %v\nUsage: %s\n", name, err, c.line(s.Program))
		return exitUsage, r.out.Flush()
	case err != nil && r.out.Flush() == nil:
		r.fail(err)
	}
	if err := r.out.Flush(); err != nil {
		return exitFailed, err
	}
	if r.failed {
		return exitFailed, nil
	}
	return r.code, nil
}

// help prints the usage of commands, with or without dashes; of all if none is named.
func (s *Shell) help(names []string) (code int, err error) {
	if len(names) == 0 {
		_, err = fmt.Fprintf(s.Stdout, "Usage: %s COMMAND\n%s", s.Program, Usage())
		return exitDone, err
	}
	for _, name := range names {
		name = "-" + strings.TrimPrefix(name, "-")
		c := find(name)
		if c == nil {
			return s.unknown(name), nil
		}
		if _, err = fmt.Fprintf(s.Stdout, "Usage: %s\n  %s\n", c.line(s.Program), c.summary); err != nil {
			return exitFailed, err
		}
	}
	return exitDone, nil
}

// find returns the command with a name like "-ls", or nil.
func find(name string) *command {
	all := commands()
	if i := slices.IndexFunc(all, func(c command) bool { return "-"+c.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// unknown reports an unknown command.
func (s *Shell) unknown(name string) int {
	switch bare := strings.TrimPrefix(name, "-"); {
	case name == "-moveToLocal":
		fmt.Fprintf(s.Stderr, "moveToLocal: Option '-moveToLocal' is not implemented yet.\n") // as Hadoop, which never had it
		return exitFailed
	case slices.Contains(missing, bare) && bare != name:
		fmt.Fprintf(s.Stderr, "%s: %s does not have this command of Hadoop\n", name, s.Program)
	default:
		fmt.Fprintf(s.Stderr, "%s: Unknown command\n", name)
		if bare == name && find("-"+name) != nil {
			fmt.Fprintf(s.Stderr, "Did you mean -%s?  This command begins with a dash.\n", name)
		}
	}
	return exitUsage
}

// missing has the commands of Hadoop's shell that this package lacks.
var missing = []string{"concat", "createSnapshot", "deleteSnapshot", "getfacl", "getfattr", "renameSnapshot", "setfacl", "setfattr"}

// line is the usage of a command.
func (c *command) line(program string) string {
	return strings.TrimSpace(program + " -" + c.name + " " + c.usage)
}

// parse splits options and arguments as Hadoop does: options come first, each by itself, and "--" ends them.
func (r *call) parse(args []string) ([]string, error) {
	if slices.Contains(r.values, "t") { // Hadoop's -touch takes it from any position
		var err error
		if args, err = r.takeValue("t", args); err != nil {
			return nil, err
		}
	}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		name := args[0][1:]
		args = args[1:]
		switch {
		case name == "-":
			return args, r.bounds(args)
		case slices.Contains(r.flags, name):
			r.flag[name] = true
		case slices.Contains(r.values, name):
			if len(args) == 0 {
				return nil, usagef("option -%s needs a value", name)
			}
			r.value[name], args = args[0], args[1:]
		case r.name == "cp" && name[0] == 'p' && strings.Trim(name, "topax") == "":
			r.value["p"] = name[1:]
		case r.name == "find":
			return append([]string{"-" + name}, args...), nil // it begins an expression
		case slices.Contains(r.refused, name):
			return nil, usagef("%s does not support option -%s of Hadoop", r.Program, name)
		default:
			return nil, usagef("Illegal option -%s", name)
		}
	}
	return args, r.bounds(args)
}

// takeValue takes an option with its value out of the arguments before "--".
func (r *call) takeValue(name string, args []string) ([]string, error) {
	at := slices.Index(args, "-"+name)
	if end := slices.Index(args, "--"); at < 0 || end >= 0 && end < at {
		return args, nil
	}
	if at+1 == len(args) {
		return nil, usagef("option -%s requires 1 argument.", name)
	}
	r.value[name] = args[at+1]
	return slices.Concat(args[:at], args[at+2:]), nil
}

// bounds checks the number of arguments.
func (r *call) bounds(args []string) error {
	switch n := len(args); {
	case n < r.min:
		return usagef("Not enough arguments: expected %d but got %d", r.min, n)
	case r.max > 0 && n > r.max:
		return usagef("Too many arguments: expected %d but got %d", r.max, n)
	}
	return nil
}

// warn prints a message after the output so far.
func (r *call) warn(text string) {
	if r.out.Flush() == nil {
		fmt.Fprintf(r.Stderr, "%s: %s\n", r.name, text)
	}
}

// fail prints the first line of an error; the command goes on.
func (r *call) fail(err error) {
	if r.ctx.Err() != nil {
		return
	}
	r.failed = true
	text, _, _ := strings.Cut(err.Error(), "\n")
	var server interface {
		error
		Answer() string
	}
	if errors.As(err, &server) && errors.Unwrap(server) == nil {
		text = server.Answer() // it is no error of io/fs
	}
	r.warn(text)
}

// absent reports whether an error means that a name does not exist.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func (r *call) println(text string) { r.out.WriteString(text); r.out.WriteByte('\n') }
