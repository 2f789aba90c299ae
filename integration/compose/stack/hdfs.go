package stack

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// HDFSVariable is the environment variable with HDFS's image. BuildHDFS is its value for
// [Stack.HDFS] to build one.
const (
	HDFSVariable = "HDFS_IMAGE"
	BuildHDFS    = "build"
)

// HDFS selects HDFS's image, which must have Hadoop's command hdfs, or builds one. An empty name
// selects the image in docker-compose.yml, which the engine downloads.
func (s *Stack) HDFS(ctx context.Context, image string) error {
	if image == BuildHDFS {
		var err error
		if image, err = s.buildHDFS(ctx); err != nil {
			return fmt.Errorf("image of HDFS: %w", err)
		}
	}
	if image != "" {
		s.env = append(s.env, HDFSVariable+"="+image)
	}
	return nil
}

// buildHDFS builds an image from Hadoop's jars and Debian with Java.
func (s *Stack) buildHDFS(ctx context.Context) (string, error) {
	jars, err := minicluster.Fetch(ctx)
	if errors.Is(err, minicluster.ErrUnavailable) {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err != nil {
		return "", err
	}
	base, err := s.Debian(ctx)
	if err != nil {
		return "", err
	}
	sources := filepath.Join(s.dir(), "hdfs")
	sum := sha256.New()
	fmt.Fprintln(sum, base, jars.Dir(), jars.Archive())
	for _, name := range []string{"Dockerfile", "hdfs", "passwd"} {
		text, err := os.ReadFile(filepath.Join(sources, name))
		if err != nil {
			return "", err
		}
		sum.Write(text)
	}
	image := fmt.Sprintf("quern-hdfs:%x", sum.Sum(nil)[:6])
	if _, err := s.Docker(ctx, "image", "inspect", image); err == nil {
		return image, nil
	}
	context := filepath.Join(s.cfg.Dir, "hdfs")
	defer os.RemoveAll(context)
	if err := errors.Join(os.RemoveAll(context), os.MkdirAll(context, 0o755)); err != nil {
		return "", err
	}
	parts := []string{filepath.Join(jars.Dir(), "jars"), filepath.Join(jars.Dir(), "classes"), filepath.Join(sources, "Dockerfile"), filepath.Join(sources, "hdfs"), filepath.Join(sources, "passwd")}
	if dir := jars.Archive(); dir != "" {
		parts = append(parts, filepath.Join(dir, minicluster.ClassList))
	}
	for _, from := range parts {
		if _, err := s.run(ctx, shortWait, "cp", "-R", from, context); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(filepath.Join(context, "hdfs"), 0o755); err != nil {
		return "", err
	}
	_, err = s.run(ctx, longWait, "docker", "build", "-q", "--network", "none", "--build-arg", "BASE="+base, "-t", image, context)
	return image, err
}

// suite and packages are Debian's release, and the packages of the base image.
const (
	suite    = "bookworm"
	packages = "openjdk-17-jre-headless,ca-certificates"
)

// baseWait limits the time for building the base.
const baseWait = 10 * time.Minute

// Debian returns an image of Debian with Java. The first time, it builds it from packages.
func (s *Stack) Debian(ctx context.Context) (string, error) {
	sum := sha256.Sum256([]byte(suite + " " + packages))
	image := fmt.Sprintf("quern-debian:%x", sum[:6])
	if _, err := s.Docker(ctx, "image", "inspect", image); err == nil {
		return image, nil
	}
	if os.Getuid() != 0 {
		return "", fmt.Errorf("%w: only root can build an image from Debian's packages", ErrUnavailable)
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return "", fmt.Errorf("%w: an image of Debian's packages needs debootstrap: %w", ErrUnavailable, err)
	}
	root, err := os.MkdirTemp("", "quern-debian-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(root)
	if _, err := s.run(ctx, baseWait, "debootstrap", "--variant=minbase", "--include="+packages, suite, root); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return image, s.importTree(ctx, root, image)
}

// importTree builds an image from a directory, without files that only the installation needs.
func (s *Stack) importTree(ctx context.Context, root, image string) error {
	ctx, cancel := context.WithTimeout(ctx, longWait)
	defer cancel()
	args := []string{"-C", root, "-c"}
	for _, dir := range []string{"var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale", "debootstrap", "proc", "sys"} {
		args = append(args, "--exclude=./"+dir+"/*")
	}
	tar, load := exec.CommandContext(ctx, "tar", append(args, ".")...), exec.CommandContext(ctx, "docker", "import", "-", image)
	var printed strings.Builder
	load.Stdout, load.Stderr = &printed, &printed
	pipe, err := tar.StdoutPipe()
	if err != nil {
		return err
	}
	load.Stdin = pipe
	if err := errors.Join(tar.Start(), load.Start()); err != nil {
		return fmt.Errorf("import %s: %w", image, err)
	}
	pipe.Close() // otherwise tar waits forever if the import has died
	if err := errors.Join(load.Wait(), tar.Wait()); err != nil {
		return fmt.Errorf("import %s: %w\n%s", image, err, printed.String())
	}
	return nil
}
