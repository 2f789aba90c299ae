package minicluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/integration/cache"
)

// ErrUnavailable reports that this machine cannot run HDFS.
var ErrUnavailable = errors.New("HDFS cannot run here")

// Jars has the directory of Hadoop's jars and of BindingSocketFactory.
type Jars struct {
	dir     string
	archive string // directory; empty: none
	lists   string // directory in which each JVM lists its classes; empty: none does
}

//go:embed pom.xml
var pom []byte

//go:embed BindingSocketFactory.java
var factory []byte

const fetchWait = 8 * time.Minute

// Fetch returns the jars from the cache, or downloads them with Maven.
func Fetch(ctx context.Context) (*Jars, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	if err := ready(ctx, "java", "javac", "mvn"); err != nil {
		return nil, err
	}
	key := string(pom) + string(factory)
	dir, err := cache.Dir("hadoop", key, func(dir string) error { return fill(ctx, dir) })
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	j := &Jars{dir: dir}
	if j.archive, err = j.archived(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "HDFS starts slowly:", err)
	}
	return j, nil
}

// fill downloads the jars into a directory and compiles BindingSocketFactory.
func fill(ctx context.Context, dir string) error {
	source := filepath.Join(dir, "BindingSocketFactory.java")
	list := filepath.Join(dir, "pom.xml")
	if err := errors.Join(os.WriteFile(source, factory, 0o666), os.WriteFile(list, pom, 0o666)); err != nil {
		return err
	}
	// Daemons do not start without directories of web pages, which the jars lack.
	for _, page := range []string{"hdfs", "datanode", "journal", "secondary", "static"} {
		if err := os.MkdirAll(filepath.Join(dir, "classes", "webapps", page), 0o777); err != nil {
			return err
		}
	}
	steps := [][]string{
		{"mvn", "-q", "-B", "-ntp", "-f", list, "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=" + filepath.Join(dir, "jars")},
		{"javac", "-cp", filepath.Join(dir, "jars", "*"), "-d", filepath.Join(dir, "classes"), source},
	}
	for _, step := range steps {
		if out, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(step, " "), err, out)
		}
	}
	return nil
}

// ready finds programs. It installs missing ones only with CI=true, as root.
func ready(ctx context.Context, programs ...string) error {
	if len(missing(programs)) > 0 && os.Getenv("CI") == "true" && os.Getuid() == 0 {
		install := "apt-get update -q && apt-get install -qy --no-install-recommends openjdk-17-jdk-headless maven"
		if out, err := exec.CommandContext(ctx, "sh", "-c", install).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: install Java and Maven: %w\n%s", ErrUnavailable, err, out)
		}
	}
	if names := missing(programs); len(names) > 0 {
		return fmt.Errorf("%w: not installed: %s", ErrUnavailable, strings.Join(names, ", "))
	}
	return nil
}

func missing(programs []string) (names []string) {
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			names = append(names, name)
		}
	}
	return names
}

// Dir returns the directory: jars/*.jar, and classes/ with the directories of web pages that the
// jars lack.
func (j *Jars) Dir() string { return j.dir }
