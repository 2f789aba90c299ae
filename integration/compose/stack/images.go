package stack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/integration/processes"
)

const module = "github.com/quernmr/quern"

// examples returns the job programs in the client's image.
func examples() []string {
	return []string{"examples/wordcount", "examples/sort", "examples/grep", "examples/tpch"}
}

// Targets returns the Dockerfile's targets for images that need no base.
func Targets() []string { return []string{"jobtracker", "tasktracker", "client"} }

// Image returns the name of one of Quern's images.
func (s *Stack) Image(target string) string { return "quern-" + target + ":" + s.cfg.Tag }

// debianTarget is the Dockerfile's target that needs a base.
const debianTarget = "tasktracker-debian"

// Programs builds the programs for the images.
func (s *Stack) Programs(ctx context.Context) error {
	if err := s.writeContext(ctx, s.contextDir()); err != nil {
		return fmt.Errorf("build programs for images: %w", err)
	}
	return nil
}

// Images builds images from the results of Programs. If base is not empty, it also builds a task
// tracker's image on that base.
func (s *Stack) Images(ctx context.Context, base string) error {
	defer os.RemoveAll(s.contextDir())
	for _, target := range Targets() {
		if err := s.buildImage(ctx, target); err != nil {
			return err
		}
	}
	if base == "" {
		return nil
	}
	return s.buildImage(ctx, debianTarget, "--build-arg", "BASE="+base)
}

// contextDir returns the directory of the Dockerfile's context.
func (s *Stack) contextDir() string { return filepath.Join(s.cfg.Dir, "context") }

func (s *Stack) buildImage(ctx context.Context, target string, flags ...string) error {
	parts := s.contextDir()
	args := append([]string{"build", "-q", "--target", target, "-t", s.Image(target), "-f", filepath.Join(parts, "Dockerfile")}, flags...)
	version, revision := s.versionOf(ctx)
	for name, value := range map[string]string{
		"title": "Quern " + target, "licenses": "Apache-2.0", "source": "https://" + module, "version": version, "revision": revision,
	} {
		args = append(args, "--label", "org.opencontainers.image."+name+"="+value)
	}
	if _, err := s.run(ctx, longWait, "docker", append(args, parts)...); err != nil {
		return fmt.Errorf("image of %s: %w", target, err)
	}
	return nil
}

// versionOf returns the version and revision of the sources, if git knows them.
func (s *Stack) versionOf(ctx context.Context) (version, revision string) {
	version, revision = "devel", "unknown"
	if out, err := s.runIn(ctx, shortWait, s.root, nil, "git", "rev-parse", "HEAD"); err == nil {
		revision = out
	}
	if out, err := s.runIn(ctx, shortWait, s.root, nil, "git", "describe", "--tags", "--dirty"); err == nil {
		version = out
	}
	return version, revision
}

// writeContext writes the context of the Dockerfile.
func (s *Stack) writeContext(ctx context.Context, parts string) error {
	if err := os.RemoveAll(parts); err != nil {
		return err
	}
	for _, dir := range []string{"bin", "jobs", "etc", "state/data", "state/tmp"} {
		if err := os.MkdirAll(filepath.Join(parts, dir), 0o755); err != nil {
			return err
		}
	}
	// Any user of the containers may create directories in these two.
	for _, dir := range []string{"data", "tmp"} {
		if err := os.Chmod(filepath.Join(parts, "state", dir), 0o777|os.ModeSticky); err != nil {
			return err
		}
	}
	dockerfile, err := os.ReadFile(filepath.Join(s.dir(), "Dockerfile"))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"Dockerfile": string(dockerfile),
		"etc/passwd": fmt.Sprintf("quern:x:%d:%d::/data:/sbin/nologin\n", imageUser, imageUser),
		"etc/group":  fmt.Sprintf("quern:x:%d:\n", imageUser),
	} {
		if err := os.WriteFile(filepath.Join(parts, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := s.build(ctx, filepath.Join(parts, "bin"), "cmd/jobtracker", "cmd/tasktracker", "cmd/mrsubmit", "integration/compose/idle"); err != nil {
		return err
	}
	return s.build(ctx, filepath.Join(parts, "jobs"), append(examples(), s.cfg.Jobs...)...)
}

// build builds static programs into a directory. tools/check.sh builds them alike.
func (s *Stack) build(ctx context.Context, dir string, packages ...string) error {
	if packages = processes.LinkBuilt(dir, packages); len(packages) == 0 {
		return nil
	}
	const stamp = module + "/cmd/internal/build."
	version, revision := s.versionOf(ctx)
	flags := []string{"build", "-trimpath", "-buildvcs=false",
		"-ldflags", strings.Join([]string{"-s", "-w", "-X", stamp + "version=" + version, "-X", stamp + "revision=" + revision}, " "),
		"-o", dir + string(filepath.Separator)}
	for _, p := range packages {
		flags = append(flags, module+"/"+p)
	}
	_, err := s.runIn(ctx, longWait, s.root, []string{"CGO_ENABLED=0"}, "go", flags...)
	return err
}
