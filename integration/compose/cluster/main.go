// Command cluster starts and stops the cluster of docker-compose.yml. make cluster runs it.
//
//	cluster up [-project NAME]               build images, make certificates, start; prints commands to try
//	cluster down [-project NAME] [-volumes]  stop; with -volumes remove everything
//	cluster images [-base IMAGE]             build only Quern's images; with -base a task tracker's image on that base, too
//
// $HDFS_IMAGE is the image of HDFS, by default an official one of Hadoop; "build" builds one.
// Exit codes: 0 success, 1 failure, 2 bad usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/quernmr/quern/integration/compose/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "usage: cluster up [-project NAME] | down [-project NAME] [-volumes] | images [-base IMAGE]")
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("bad usage")

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	set := flag.NewFlagSet("cluster", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	project := set.String("project", "quern", "")
	volumes := set.Bool("volumes", false, "")
	base := set.String("base", "", "")
	if err := set.Parse(args[1:]); err != nil || set.NArg() > 0 {
		return errUsage
	}
	dir, err := clusterDir(*project)
	if err != nil {
		return err
	}
	s, err := stack.New(ctx, stack.Config{Project: *project, Dir: dir})
	if err != nil {
		return err
	}
	switch args[0] {
	case "up":
		return up(ctx, s, out)
	case "down":
		if err := s.Down(ctx, *volumes); err != nil || !*volumes {
			return err
		}
		return os.RemoveAll(dir)
	case "images":
		return images(ctx, s, *base)
	}
	return errUsage
}

func images(ctx context.Context, s *stack.Stack, base string) error {
	if err := s.Programs(ctx); err != nil {
		return err
	}
	return s.Images(ctx, base)
}

// clusterDir returns the directory with the certificates of a cluster. It exists as long as the
// volumes.
func clusterDir(project string) (string, error) {
	cache := os.Getenv("QUERN_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(user, "quern")
	}
	return filepath.Join(cache, "cluster-"+project), nil
}

func up(ctx context.Context, s *stack.Stack, out io.Writer) error {
	began := time.Now()
	fmt.Fprintln(out, "building images")
	if err := images(ctx, s, ""); err != nil {
		return err
	}
	if err := s.HDFS(ctx, os.Getenv(stack.HDFSVariable)); err != nil {
		return err
	}
	if err := s.Certificates(); err != nil {
		return err
	}
	fmt.Fprintln(out, "starting containers")
	if err := s.Up(ctx); err != nil {
		return fmt.Errorf("%w\nwithout access to an image registry, set HDFS_IMAGE=%s to build HDFS's image", err, stack.BuildHDFS)
	}
	if err := s.Put(ctx, "README.md", "/try/README.md"); err != nil {
		return err
	}
	fmt.Fprintf(out, "up after %v; try\n", time.Since(began).Round(time.Second))
	for _, args := range [][]string{
		{"exec", "client", "mrsubmit", "cluster"},
		{"exec", "client", "mrsubmit", "run", "/jobs/wordcount", "-input", "hdfs:///try/README.md", "-output", "hdfs:///try/counts"},
		{"exec", "namenode", "hdfs", "dfs", "-cat", "/try/counts/part-r-00000"},
	} {
		fmt.Fprintln(out, " ", strings.Join(s.ComposeCommand(args...), " "))
	}
	fmt.Fprintln(out, "to stop it: make cluster-down")
	return nil
}
