package streaming

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quernmr/quern/runtime"
)

// Properties of scripts that run when a command has failed: -mapdebug and -reducedebug.
const (
	mapDebug    = "mapreduce.map.debug.script"
	reduceDebug = "mapreduce.reduce.debug.script"
)

// debug runs the script for a failed command, in the attempt's directory, if the job has one. Its four arguments are those
// of Hadoop: files with the standard output, the last lines of standard error, the error, and the job's properties. Its
// output goes to the attempt's log, and its last lines into the error. It returns the error of the command.
func (c *compiled) debug(t *runtime.Task, script string, child *child, failure error) error {
	args := words(c.plan.Properties[script])
	if failure == nil || len(args) == 0 || context.Cause(t.Ctx) != nil {
		return failure
	}
	files, err := c.debugFiles(t, child, failure)
	if err != nil {
		return errors.Join(failure, fmt.Errorf("%s: %w", script, err))
	}
	said := newStderr(t, c, false)
	said.prefix = nil
	read, write, err := os.Pipe()
	if err != nil {
		return errors.Join(failure, fmt.Errorf("%s: %w", script, err))
	}
	cmd := exec.Command(lookUp(t.Dir(), args[0]), append(args[1:], files...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.Dir(), c.environment(t), write, write
	cmd, err = startProcess(cmd)
	write.Close()
	if err == nil {
		stop := context.AfterFunc(t.Ctx, func() {
			cmd.Process.Kill()
			read.Close()
		})
		said.read(read)
		err = cmd.Wait()
		stop()
	}
	read.Close()
	text := fmt.Sprintf("%s %q", script, c.plan.Properties[script])
	if err != nil {
		text += " failed: " + err.Error()
	}
	return fmt.Errorf("%w\n%s wrote:\n%s", failure, text, said.last())
}

// debugFiles writes the files for a script.
func (c *compiled) debugFiles(t *runtime.Task, child *child, failure error) (names []string, err error) {
	dir, err := os.MkdirTemp(t.Dir(), "debug-")
	if err != nil {
		return nil, err
	}
	for _, file := range []struct{ name, content string }{
		{"stdout", ""}, // the records of a command are its output
		{"stderr", child.stderr.last() + "\n"},
		{"syslog", failure.Error() + "\n"},
		{"job.xml", c.configuration()},
	} {
		name := filepath.Join(dir, file.name)
		if err := os.WriteFile(name, []byte(file.content), 0o666); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// configuration returns the job's properties as a file of Hadoop's.
func (c *compiled) configuration() string {
	var text strings.Builder
	text.WriteString("<configuration>\n")
	for _, name := range slices.Sorted(maps.Keys(c.plan.Properties)) {
		text.WriteString("<property><name>")
		_ = xml.EscapeText(&text, []byte(name)) // a builder takes everything
		text.WriteString("</name><value>")
		_ = xml.EscapeText(&text, []byte(c.plan.Properties[name]))
		text.WriteString("</value></property>\n")
	}
	text.WriteString("</configuration>\n")
	return text.String()
}
