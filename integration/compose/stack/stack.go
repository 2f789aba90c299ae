// Package stack runs the cluster of docker-compose.yml: it builds images, issues certificates,
// starts and stops the cluster, and runs commands in its containers. It uses docker compose or
// docker-compose.
//
// It builds Quern's images with integration/compose/Dockerfile. HDFS's image is $HDFS_IMAGE. With
// "build" it is built from Debian's packages and Maven's jars, for machines without access to an
// image registry.
//
// Containers, networks and volumes have the project's name. Other files are in the Stack's
// directory. Images stay when the cluster is removed. Several goroutines may use a Stack once it
// is up.
package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/quernmr/quern/identity"
)

// ErrUnavailable reports that this machine cannot run the cluster.
var ErrUnavailable = errors.New("the cluster cannot run here")

// Config describes a cluster.
type Config struct {
	Project string   // name of all its containers, networks and volumes
	Dir     string   // for certificates and the contents of images
	Net     string   // first three numbers of its addresses; empty: the default of docker-compose.yml
	Tag     string   // of Quern's images; empty: "dev"
	Files   []string // compose files in addition to docker-compose.yml, from its directory
	Jobs    []string // packages of programs for the client's image, in addition to the examples; paths in the module
	Env     []string // NAME=value, for the files
}

// Stack is a cluster, up or down.
type Stack struct {
	cfg     Config
	root    string   // of the repository
	compose []string // command: docker compose or docker-compose
	env     []string

	mu         sync.Mutex
	containers map[string]string // IDs by service; until Up or Down they stay
}

// Generous time limits: for a query; for building, starting or ending everything.
const (
	shortWait = 3 * time.Minute
	longWait  = 12 * time.Minute
)

// New finds an engine and compose.
func New(ctx context.Context, cfg Config) (*Stack, error) {
	if cfg.Tag == "" {
		cfg.Tag = "dev"
	}
	s := &Stack{cfg: cfg, containers: make(map[string]string)}
	var err error
	if s.cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	if s.root, err = s.run(ctx, shortWait, "go", "list", "-m", "-f", "{{.Dir}}"); err != nil {
		return nil, err
	}
	if _, err := s.Docker(ctx, "info"); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for _, compose := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		if _, err = s.run(ctx, shortWait, compose[0], append(compose[1:], "version")...); err == nil {
			s.compose = compose
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: neither docker compose nor docker-compose: %w", ErrUnavailable, err)
	}
	s.env = append([]string{
		"COMPOSE_HTTP_TIMEOUT=600", "COMPOSE_PROJECT_NAME=" + cfg.Project, "QUERN_TAG=" + s.cfg.Tag, "QUERN_RUN=" + s.cfg.Dir, "QUERN_USER=" + user(),
	}, cfg.Env...)
	if cfg.Net != "" {
		s.env = append(s.env, "QUERN_NET="+cfg.Net)
	}
	return s, nil
}

// imageUser is the default user of programs in the images.
const imageUser = 65532

// user returns the daemons' user and group, which have no special rights and can read the
// certificates that this process issues.
func user() string {
	if os.Getuid() == 0 {
		return fmt.Sprintf("%d:%d", imageUser, imageUser)
	}
	return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
}

// dir returns the directory with the files of this package and of compose.
func (s *Stack) dir() string { return filepath.Join(s.root, "integration", "compose") }

// Certificates issues certificates for all daemons and for the client, an administrator. It uses
// an existing authority.
func (s *Stack) Certificates() error {
	now := time.Now()
	certs := filepath.Join(s.cfg.Dir, "certs")
	authority, err := identity.OpenAuthority(filepath.Join(certs, "authority"), now)
	if err != nil {
		return err
	}
	for role, names := range map[identity.Role][]string{
		identity.JobTracker: JobTrackers(), identity.TaskTracker: TaskTrackers(), identity.Client: {"admin"},
	} {
		for _, name := range names {
			own := filepath.Join(certs, string(role)+"-"+name)
			if err := authority.Issue(own, identity.Peer{Role: role, Name: name}, now, now.AddDate(1, 0, 0)); err != nil {
				return err
			}
			if err := handOver(own); err != nil {
				return err
			}
		}
	}
	return nil
}

// handOver makes the daemons' user the owner of a directory of certificates.
func handOver(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	for _, name := range append(files, dir) {
		if err := os.Chown(name, imageUser, imageUser); err != nil {
			return err
		}
	}
	return nil
}

// JobTrackers and TaskTrackers return the daemons' IDs, which are also their services' names.
func JobTrackers() []string  { return []string{"jt1", "jt2", "jt3"} }
func TaskTrackers() []string { return []string{"tt1", "tt2", "tt3", "tt4"} }

// Nodes returns the services that provide a network. A node, task tracker and DataNode of the same
// number share it.
func Nodes() []string { return []string{"node1", "node2", "node3", "node4"} }

// Up starts all services that do not run.
func (s *Stack) Up(ctx context.Context) error {
	defer s.forget()
	_, err := s.Compose(ctx, "up", "-d", "--no-build")
	return err
}

func (s *Stack) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.containers = make(map[string]string)
}

// Down removes all containers and networks, and with volumes the volumes.
func (s *Stack) Down(ctx context.Context, volumes bool) error {
	defer s.forget()
	args := []string{"down", "--remove-orphans", "-t", "10"}
	if volumes {
		args = append(args, "-v")
	}
	_, err := s.Compose(ctx, args...)
	return err
}

// ComposeCommand returns a user's command line for this cluster's compose.
func (s *Stack) ComposeCommand(args ...string) []string {
	line := append(append([]string(nil), s.compose...), "-p", s.cfg.Project)
	for _, file := range append([]string{"docker-compose.yml"}, s.cfg.Files...) {
		line = append(line, "-f", filepath.Join(s.dir(), file))
	}
	return append(line, args...)
}

// Compose runs a command of compose.
func (s *Stack) Compose(ctx context.Context, args ...string) (string, error) {
	line := s.ComposeCommand(args...)
	return s.run(ctx, longWait, line[0], line[1:]...)
}

// Docker runs a command of docker and returns its standard output.
func (s *Stack) Docker(ctx context.Context, args ...string) (string, error) {
	return s.run(ctx, shortWait, "docker", args...)
}

// DockerCombined runs a command of docker and returns both of its outputs.
func (s *Stack) DockerCombined(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, shortWait)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	return string(out), err
}

// Container returns the ID of a service's container, even if it does not run.
func (s *Stack) Container(ctx context.Context, service string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := s.containers[service]; id != "" {
		return id, nil
	}
	out, err := s.Docker(ctx, "ps", "-aq", "--no-trunc", "--filter", "label=com.docker.compose.project="+s.cfg.Project,
		"--filter", "label=com.docker.compose.service="+service)
	if err != nil {
		return "", err
	}
	if ids := strings.Fields(out); len(ids) != 1 {
		return "", fmt.Errorf("service %s has %d containers", service, len(ids))
	}
	s.containers[service] = out
	return out, nil
}

// Put waits for HDFS and copies a file of the repository into it.
func (s *Stack) Put(ctx context.Context, name, to string) error {
	namenode, err := s.Container(ctx, "namenode")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, longWait)
	defer cancel()
	script := fmt.Sprintf("hdfs dfsadmin -safemode wait && hdfs dfs -mkdir -p %s && hdfs dfs -put -f - %s", path.Dir(to), to)
	cmd := exec.CommandContext(ctx, "docker", "exec", "-i", namenode, "/bin/bash", "-c", script)
	file, err := os.Open(filepath.Join(s.root, name))
	if err != nil {
		return err
	}
	defer file.Close()
	cmd.Stdin = file
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("put %s into HDFS: %w\n%s", name, err, out)
	}
	return nil
}

// Leftovers lists the project's containers, networks and volumes.
func (s *Stack) Leftovers(ctx context.Context) ([]string, error) {
	var left []string
	for _, kind := range []string{"container", "network", "volume"} {
		args := []string{kind, "ls", "-q", "--filter", "label=com.docker.compose.project=" + s.cfg.Project}
		if kind == "container" {
			args = append(args, "-a")
		}
		out, err := s.Docker(ctx, args...)
		if err != nil {
			return nil, err
		}
		for _, name := range strings.Fields(out) {
			left = append(left, kind+" "+name)
		}
	}
	return left, nil
}

// run runs a command to its end and returns its trimmed standard output. An error has the end of
// both outputs.
func (s *Stack) run(ctx context.Context, limit time.Duration, name string, args ...string) (string, error) {
	return s.runIn(ctx, limit, "", nil, name, args...)
}

func (s *Stack) runIn(ctx context.Context, limit time.Duration, dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), s.env...), env...)
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), errors.Join(err, ctx.Err()), tail(stdout.String()), tail(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// tail returns the end of a text.
func tail(text string) string { return text[max(0, len(text)-4<<10):] }
