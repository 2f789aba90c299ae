package streaming

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// shell runs scripts without a first line such as #!/bin/sh, as Hadoop does.
const shell = "/bin/sh"

// startProcess starts a command. The returned command is the given one, or the shell that runs its file.
func startProcess(cmd *exec.Cmd) (*exec.Cmd, error) {
	err := cmd.Start()
	if !errors.Is(err, syscall.ENOEXEC) {
		return cmd, err
	}
	script := exec.Command(shell, append([]string{cmd.Path}, cmd.Args[1:]...)...)
	script.Dir, script.Env, script.Stdin, script.Stdout, script.Stderr = cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr
	return script, script.Start()
}

// startError adds what to do to an error of starting a command. The system's own says that the script is missing if only
// the interpreter of the script is.
func (c *child) startError(err error) error {
	switch {
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%w: the environment has all properties of the job; cut long values with -D %s=1000", err, truncateLimit)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w: use chmod a+x, or ship the file with -file", err)
	case !errors.Is(err, syscall.ENOENT):
		return err
	}
	if program, ok := interpreter(c.cmd.Path); strings.HasSuffix(program, "\r") {
		return fmt.Errorf("%w: the first line of the script ends in a carriage return: save it with line feeds only", err)
	} else if ok {
		return fmt.Errorf("%w: the first line of the script names the interpreter %q, which is not there: change that line, or name another interpreter in the command", err, program)
	}
	name := c.cmd.Args[0]
	if filepath.IsAbs(name) {
		return err
	}
	err = fmt.Errorf("%q is neither in the working directory of the attempt nor on PATH: ship it with -file, or install it where tasks run", name)
	if className.MatchString(name) {
		err = fmt.Errorf("%w; Quern runs no Java, and has of Hadoop's classes only %s", err, strings.Join(append(mappers.known, reducers.known...), ", "))
	}
	return err
}

// className matches what may be the full name of a class of Java.
var className = regexp.MustCompile(`^(\w+\.){2,}[A-Z][\w$]*$`)

// interpreter returns the program that the first line of a script names. It is false if there is no such line.
func interpreter(script string) (program string, ok bool) {
	f, err := os.Open(script)
	if err != nil {
		return "", false
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 4<<10)).ReadString('\n') // a first line without end counts too
	words, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "#!")
	program, _, _ = strings.Cut(strings.TrimLeft(words, " \t"), " ")
	return program, ok
}
