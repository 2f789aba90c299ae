package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/archive"
	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/mapreduce/streaming"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

const streamingSynopsis = "[-jobtracker HOST:PORT,…] [other flags of mrsubmit run] [-D NAME=VALUE]… [-files PATH[#NAME],…] -input PATHS -output DIR -mapper COMMAND -reducer COMMAND [other options of Streaming]"

const streamingHelp = `The flags below come first, then the options of Hadoop Streaming as hadoop-streaming.jar takes them:
generic ones (-D, -conf, -files), then all others. The page docs/streaming.md lists them.

Exit codes are Hadoop's: 1 if the job failed or an option is wrong, 5 if an input is missing or the output exists.`

// exitNotStarted is Hadoop's exit code for a job that cannot start because of its input or output.
const exitNotStarted = 5

// streaming runs a job of Hadoop Streaming. The job's program is this executable.
func (t *tool) streaming(ctx context.Context, args []string) int {
	set := newFlags("streaming")
	f := t.declareRun(set)
	command, err := t.parseStreaming(set, f, args)
	if err == nil {
		err = t.runStreaming(ctx, f, command)
	}
	var usage usageError
	switch {
	case errors.Is(err, streaming.ErrHelp):
		err = flag.ErrHelp
	case errors.As(err, &usage): // Hadoop's code for it is 1
		err = errors.New(usage.text)
	}
	return t.endScripted("streaming", set, f, err)
}

func (t *tool) runStreaming(ctx context.Context, f *runFlags, command *streaming.Command) error {
	f.describe = func(ctx context.Context, f *runFlags, status *web.Cluster) (string, *wire.Submission, func(), error) {
		return t.streamed(ctx, f, status, command)
	}
	f.failure = streamingFailure
	return t.runJob(ctx, f)
}

// parseStreaming parses our own flags at the beginning, then Hadoop's options.
func (t *tool) parseStreaming(set *flag.FlagSet, f *runFlags, args []string) (*streaming.Command, error) {
	own := 0
	for own < len(args) && t.inspect == nil {
		name, _, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(args[own], "-"), "-"), "=")
		known := set.Lookup(name)
		if known == nil || args[own] == name || name == "D" { // -D is one of Hadoop's generic options
			break
		}
		own++
		if boolean, ok := known.Value.(interface{ IsBoolFlag() bool }); !hasValue && !(ok && boolean.IsBoolFlag()) {
			own++
		}
	}
	own = min(own, len(args))
	if _, err := t.parse(set, args[:own], anyNumber); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	f.args = args[own:]
	command, err := streaming.Parse(f.args, dir)
	if err != nil {
		return nil, err
	}
	url, err := command.Job.DefaultFS()
	if err != nil {
		return nil, err
	}
	return command, f.accept(command, url)
}

// accept sets the directory of relative inputs and outputs, and obeys -background. url is the file system of inputs and
// outputs without a scheme; empty: they are local.
func (f *runFlags) accept(command *streaming.Command, url string) (err error) {
	if command.Job.Home, err = homeOn(url); err != nil {
		return err
	}
	if command.Background && len(f.jobtrackers) == 0 {
		return errors.New("-background: without a job tracker the job runs in this process: give -jobtracker")
	}
	f.scripted.detach = f.scripted.detach || command.Background
	return nil
}

// streamed describes the job. On a cluster it uploads its local side files first, because tasks run on other machines.
func (t *tool) streamed(_ context.Context, f *runFlags, status *web.Cluster, command *streaming.Command) (exe string, sub *wire.Submission, remove func(), err error) {
	if exe, err = os.Executable(); err != nil {
		return "", nil, nil, fmt.Errorf("find the program of the job: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", nil, nil, fmt.Errorf("find the working directory: %w", err)
	}
	if err := sortDirectories(command.Job); err != nil {
		return "", nil, nil, err
	}
	if status != nil {
		if err := uploadFiles(command.Job, status, dir); err != nil {
			return "", nil, nil, err
		}
	}
	sub, warnings, err := command.Job.Submission(f.args, dir)
	if err != nil {
		return "", nil, nil, err
	}
	for _, warning := range slices.Concat(command.Notes, warnings) {
		fmt.Fprintln(t.stderr, "warning:", errorText(errors.New(warning)))
	}
	if command.Verbose {
		properties := sub.Plan.Jobs[0].Properties
		for _, name := range slices.Sorted(maps.Keys(properties)) { // as Hadoop prints them
			fmt.Fprintf(t.stdout, "STREAM: %s=%s\n", name, properties[name])
		}
	}
	if sub.Program.Path, err = dfs.Clean(exe); err != nil {
		return "", nil, nil, err
	}
	return exe, sub, func() {}, t.settle(f, sub)
}

// sortDirectories finds the side files in other file systems that are directories. Those that are local are known.
func sortDirectories(job *streaming.Job) error {
	for name, url := range job.Files {
		if !strings.Contains(url, "://") {
			continue
		}
		clean, err := dfs.Clean(url)
		if err != nil {
			return fmt.Errorf("file %s: %w", url, err)
		}
		if info, err := files().Stat(clean); err == nil && info.Dir { // of one that is missing, the error comes later
			delete(job.Files, name)
			job.Archives[name] = url
		}
	}
	return nil
}

// uploadFiles uploads local side files, as programs are: by hash, at most once a day.
func uploadFiles(job *streaming.Job, status *web.Cluster, dir string) error {
	staging, err := ownStaging(status)
	if err != nil || strings.HasPrefix(staging, "file://") { // the machines share local files; jobs cannot read this staging directory
		return err
	}
	upload := func(path, suffix string) (string, error) {
		if strings.Contains(path, "://") {
			return path, nil
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		url, err := uploadSide(staging, status.Wall, path, suffix)
		if err != nil {
			return "", fmt.Errorf("upload %s: %w", path, err)
		}
		return url, nil
	}
	for name, path := range job.Files {
		if job.Files[name], err = upload(path, ""); err != nil {
			return err
		}
	}
	for name, path := range job.Archives {
		if job.Archives[name], err = upload(path, archive.Suffix(path)); err != nil {
			return err
		}
	}
	return nil
}

// uploadSide uploads a file, or a directory as an archive.
func uploadSide(staging string, today time.Time, path, suffix string) (url string, err error) {
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if info.IsDir() {
		packed, err := os.CreateTemp("", "quern-directory-")
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, packed.Close(), os.Remove(packed.Name())) }()
		if err := streaming.PackDirectory(files(), path, packed); err != nil {
			return "", err
		}
		path, suffix = packed.Name(), ".tar"
	}
	url, _, err = client.UploadFile(files(), staging, today, path, suffix)
	return url, err
}

// streamingFailure returns Hadoop's exit code for a job that is not submitted.
func streamingFailure(err error) int {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, runtime.ErrInput) || errors.Is(err, runtime.ErrOutputExists) {
		return exitNotStarted
	}
	return exitFailed
}
