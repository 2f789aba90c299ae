package streaming

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quernmr/quern/internal/hadoop"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// temporary is the name of TMPDIR in the working directory, as in Hadoop.
const temporary = "tmp"

// environment returns the variables of a command: those of the worker, the job's properties under their current and old
// names, the attempt's own ones, and those of -cmdenv. Later ones win.
func (c *compiled) environment(t *runtime.Task) []string {
	values := make(map[string]string)
	for name, value := range c.plan.Properties {
		values[name] = value
	}
	for name, value := range c.ofAttempt(t) {
		values[name] = value
	}
	for old, current := range hadoop.Renamed() {
		if value := values[current]; value != "" && values[old] == "" {
			values[old] = value
		}
	}
	all := os.Environ()
	for name, value := range values {
		if c.valueMax >= 0 {
			value = value[:min(len(value), c.valueMax)]
		}
		if value != "" && !strings.ContainsRune(value, 0) {
			all = append(all, variable(name)+"="+value)
		}
	}
	all = append(all, "PWD="+t.Dir(), "TMPDIR="+filepath.Join(t.Dir(), temporary))
	return append(all, c.Environment...)
}

// variable returns the name of the variable for a property.
func variable(property string) string {
	name := []byte(property)
	for i, b := range name {
		if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9') {
			name[i] = '_'
		}
	}
	return string(name)
}

// ofAttempt returns the properties that Hadoop sets for each attempt.
func (c *compiled) ofAttempt(t *runtime.Task) map[string]string {
	isMap := t.ID.Task.Kind == wire.Map
	set := map[string]string{
		"mapreduce.job.id":          t.ID.Task.Job.String(),
		"mapreduce.task.id":         t.ID.Task.String(),
		"mapreduce.task.attempt.id": t.ID.String(),
		"mapreduce.task.ismap":      strconv.FormatBool(isMap),
		"mapreduce.task.partition":  strconv.Itoa(t.ID.Task.N),
		"mapreduce.task.output.dir": hadoopURI(t.OutputDir()),
		"mapreduce.job.name":        c.plan.Name,
		"mapreduce.job.reduces":     strconv.Itoa(c.plan.Reduces),
		"mapred.local.dir":          t.Dir(),
		"mapred.work.output.dir":    hadoopURI(t.OutputDir()),
	}
	if isMap && c.input != nil {
		for _, prefix := range []string{"mapreduce.map.input.", "map.input."} {
			set[prefix+"file"] = hadoopURI(c.input.Path)
			set[prefix+"start"] = strconv.FormatInt(c.input.Offset, 10)
			set[prefix+"length"] = strconv.FormatInt(c.input.Length, 10)
		}
	}
	return set
}

// hadoopURI returns a URL as Hadoop prints it: file:/path.
func hadoopURI(url string) string {
	if path, ok := strings.CutPrefix(url, "file://"); ok {
		return "file:" + path
	}
	return url
}
