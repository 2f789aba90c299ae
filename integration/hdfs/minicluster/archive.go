package minicluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/quernmr/quern/integration/cache"
)

// ClassList is the name of the list in [Jars.Archive], for the Java of other machines.
const ClassList = "classes.list"

const archiveFile = "hadoop.jsa"

// Archive returns the directory of an archive of HDFS's classes, and of their list. Java maps the
// archive into memory: daemons and commands start in half the processor time. It is empty if the
// archive could not be made: then they only start more slowly.
func (j *Jars) Archive() string { return j.archive }

// archived makes the archive, or finds it in the cache. Another Java needs another one.
func (j *Jars) archived(ctx context.Context) (string, error) {
	java, err := exec.LookPath("java")
	if err == nil {
		java, err = filepath.EvalSymlinks(java)
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(java)
	if err != nil {
		return "", err
	}
	return cache.Dir("classes", fmt.Sprint(j.dir, java, info.ModTime().UnixNano()), func(dir string) error {
		list, err := j.listClasses(ctx, dir)
		if err != nil {
			return fmt.Errorf("list the classes of HDFS: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, ClassList), list, 0o666); err != nil {
			return err
		}
		out, err := exec.CommandContext(ctx, "java", "-Xshare:dump", "-XX:SharedClassListFile="+filepath.Join(dir, ClassList),
			"-XX:SharedArchiveFile="+filepath.Join(dir, archiveFile), "-cp", j.jars()).CombinedOutput()
		if err != nil {
			return fmt.Errorf("archive the classes of HDFS: %w\n%s", err, out[max(0, len(out)-4<<10):])
		}
		return nil
	})
}

// lists counts the lists of classes that this process has demanded.
var lists atomic.Int64

// listClasses runs a small HDFS, and returns the names of all classes that its daemons and commands load.
func (j *Jars) listClasses(ctx context.Context, dir string) (list []byte, err error) {
	temporary := filepath.Join(dir, "hdfs")
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	c, err := Start(ctx, Config{Jars: &Jars{dir: j.dir, lists: temporary}, Dir: temporary, Racks: []string{"/a"}, Replication: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	name := filepath.Join(j.dir, "pom.xml")
	if _, err := c.Shell(ctx, "-put", name, "/f"); err != nil {
		return nil, err
	}
	if _, err := c.Shell(ctx, "-cat", "/f"); err != nil {
		return nil, err
	}
	if _, err := c.Admin(ctx, "-safemode", "get"); err != nil {
		return nil, err
	}
	for _, d := range c.All() { // a killed JVM would not finish its list
		if err := d.signal(syscall.SIGTERM); err != nil {
			return nil, err
		}
		<-d.ended
	}
	files, err := filepath.Glob(filepath.Join(temporary, "*.classes"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), " id: ") // numbers of one JVM mean nothing to another
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return []byte(strings.Join(slices.Compact(names), "\n")), nil
}

// classFlags returns the arguments of java for its class path: the archive needs the jars first.
func (j *Jars) classFlags(conf string) []string {
	path := j.jars() + ":" + filepath.Join(j.dir, "classes") + ":" + conf
	switch {
	case j.lists != "":
		return []string{"-XX:DumpLoadedClassList=" + filepath.Join(j.lists, fmt.Sprint(lists.Add(1), ".classes")), "-cp", path}
	case j.archive != "":
		return []string{"-XX:SharedArchiveFile=" + filepath.Join(j.archive, archiveFile), "-cp", path}
	}
	return []string{"-cp", path}
}

// jars returns the class path of all jars.
func (j *Jars) jars() string { return filepath.Join(j.dir, "jars", "*") }
