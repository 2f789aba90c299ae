package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/cmd/internal/hadooplog"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/mapreduce/streaming"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

var streamingJar = regexp.MustCompile(`^hadoop.*streaming.*\.jar$`)

// streamingClass is the main class of Hadoop Streaming. Its short name is that of older releases.
const streamingClass = "org.apache.hadoop.streaming.HadoopStreaming"

// hadoopJar runs hadoop jar: JAR, perhaps its main class, and the class's arguments.
func (t *tool) hadoopJar(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usagef("RunJar jarFile [mainClass] args...")
	}
	jar, args := args[0], args[1:]
	isStreaming, err := isStreamingJar(jar)
	switch {
	case err != nil:
		return err
	case !isStreaming:
		return fmt.Errorf("%s is not run: Quern runs no Java. It runs jobs of Hadoop Streaming: its jar is named hadoop-streaming*.jar, or has the main class %s. "+
			"Write the job again with commands as mapper and reducer, or in Go: see docs/hadoop.md", jar, streamingClass)
	}
	if len(args) > 0 && args[0] == streamingClass { // of a jar without manifest
		args = args[1:]
	}
	return t.hadoopStreaming(ctx, args)
}

// isStreamingJar recognizes the jar of Streaming by its manifest, or by its name if it has none: an empty file will do, and
// so will the name of a file that was left on another machine.
func isStreamingJar(name string) (bool, error) {
	named := streamingJar.MatchString(filepath.Base(name))
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist) && named:
		return true, nil
	case errors.Is(err, os.ErrNotExist):
		return false, usagef("JAR does not exist or is not a normal file: %s", name)
	case err != nil:
		return false, err
	case info.Size() == 0:
		return named, nil
	}
	class, err := mainClass(name)
	if err != nil {
		return false, fmt.Errorf("not a valid JAR: %s: %w", name, err)
	}
	return class == streamingClass || class == "" && named, nil
}

// mainClass returns the main class in a jar's manifest; empty: it has none.
func mainClass(name string) (string, error) {
	z, err := zip.OpenReader(name)
	if err != nil {
		return "", err
	}
	defer z.Close()
	f, err := z.Open("META-INF/MANIFEST.MF")
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "", err
	}
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\n "), nil) // long lines are continued after a blank
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if class, ok := strings.CutPrefix(lines.Text(), "Main-Class:"); ok {
			return strings.ReplaceAll(strings.TrimSpace(class), "/", "."), nil
		}
	}
	return "", nil
}

// hadoopStreaming runs a job of Streaming, and reports as Hadoop does.
func (t *tool) hadoopStreaming(ctx context.Context, args []string) error {
	r := &hadoopRun{tool: t, log: t.hadoopLog()}
	err := t.startStreaming(ctx, r, args)
	var code exitCode
	switch {
	case err == nil:
		return nil
	case errors.Is(err, streaming.ErrHelp):
		_, err = fmt.Fprintf(t.stdout, "Usage: hadoop jar hadoop-streaming.jar [generic options] [options of Streaming]\n  %s\nThe page docs/streaming.md explains them.\n", strings.Join(streaming.Completions(), " "))
		return err
	case errors.As(err, &code): // a job has failed
		r.log.Write("ERROR", hadooplog.StreamingLogger, "Job not successful!")
	case r.submitting:
		r.log.Write("ERROR", hadooplog.StreamingLogger, "Error Launching job : "+r.launchFailure(err))
		code = exitCode(streamingFailure(err))
	default:
		r.log.Write("ERROR", hadooplog.StreamingLogger, err.Error())
		code = exitCode(exitFailed)
	}
	fmt.Fprintln(t.stderr, "Streaming Command Failed!")
	return code
}

// startStreaming parses the options and runs the job.
func (t *tool) startStreaming(ctx context.Context, r *hadoopRun, args []string) error {
	g, rest, err := parseGeneric(args)
	if err != nil {
		return err
	}
	f := t.declareRun(newFlags("streaming"))
	switch jt := cmp.Or(g.JobTracker(), g.Property("mapreduce.framework.name")); {
	case jt == "local":
		*f.list = ""
	case g.JobTracker() != "":
		*f.list = jt
	}
	if err := f.check(); err != nil {
		return err
	}
	f.args = args
	command, err := g.Command(rest)
	if err != nil {
		return err
	}
	url, err := defaultFS(g)
	if err != nil {
		return err
	}
	if err := f.accept(command, url); err != nil {
		return err
	}
	if g.FS() != "" || url != "" && g.Property("fs.defaultFS") == "" { // the commands see it, as in Hadoop
		command.Job.SetDefaultFS(cmp.Or(strings.TrimSuffix(url, "/"), "file:///"))
	}
	f.hadoop = r
	return t.runStreaming(ctx, f, command)
}

// homeOn returns the URL of the user's home directory in a file system; empty: it is local.
func homeOn(url string) (string, error) {
	if url == "" {
		return "", nil
	}
	of, err := dfs.AttributedOf(files(), url)
	if err != nil {
		return "", err
	}
	homes, ok := of.(interface {
		Home(name string) (string, error)
	})
	if !ok {
		return "", fmt.Errorf("file system %s: it has no home directories: %w", url, errors.ErrUnsupported)
	}
	return homes.Home(url)
}

// hadoopRun is a job that is reported as Hadoop does.
type hadoopRun struct {
	*tool
	log        *hadooplog.Log
	submitting bool // the options are right, and the cluster answers
	output     string
}

// launchFailure returns why a job is not submitted. An output that exists is named in Hadoop's words, for which scripts look.
func (r *hadoopRun) launchFailure(err error) string {
	if errors.Is(err, runtime.ErrOutputExists) {
		return fmt.Sprintf("Output directory %s already exists: %v", r.output, err)
	}
	return err.Error()
}

// run submits a job and follows it. The error is an exit code if the job failed.
func (r *hadoopRun) run(ctx context.Context, cfg client.Config, sub *wire.Submission, from failures) error {
	r.output = sub.Plan.Jobs[0].Output
	job := hadooplog.NewJob(r.log, func(id wire.JobID) []hadooplog.Attempt {
		all, err := from.failed(ctx, id)
		if err != nil {
			r.log.Write("WARN", hadooplog.JobLogger, fmt.Sprintf("failed attempts of %v are not known: %v", id, err))
		}
		return all
	})
	cfg.Quiet, cfg.Silent, cfg.Width, cfg.Out = true, true, nil, r.log.Notes(hadooplog.JobLogger)
	cfg.Changed = func(jobs []wire.JobStatus) { job.Update(&jobs[0]) }
	r.submitting = true
	ended, err := client.Do(ctx, cfg, sub)
	switch {
	case err != nil:
		return err
	case cfg.Detach:
		r.log.Submitted(ended[0].ID)
		return nil
	case ended[0].State != wire.Succeeded:
		r.saveLogs(ctx, job.Failed(), from, savedTotal)
		return errReported
	}
	r.log.Write("INFO", hadooplog.StreamingLogger, "Output directory: "+cmp.Or(r.output, "none"))
	return nil
}
