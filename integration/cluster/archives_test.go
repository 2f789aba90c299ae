package cluster_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
)

// zipped returns a zip file of members with the same content.
func zipped(t *testing.T, content string, names ...string) string {
	t.Helper()
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, name := range names {
		member, err := w.Create(name)
		if err == nil {
			_, err = member.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

// TestArchives: with the isolation that the machine permits, the maps of a job read files of an archive. The unpacked
// copies are gone when the job has ended. Archives that lead out are refused. Two CSV files are joined, too.
func TestArchives(t *testing.T) {
	c := start(t, small)
	check := func(out, part, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(out, part)); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	packed := zipped(t, "packed\n", "en/list")
	in, out := strings.Join([]string{c.file("1", "lib/en/list\n"), c.file("2", "lib/en/list\n"), c.file("3", "lib/en/list\n")}, ","), filepath.Join(c.dir, "out")
	c.mrsubmit("streaming", "-archives", c.file("words.zip", packed)+"#lib", "-input", in, "-output", out,
		"-mapper", "xargs cat", "-reducer", "cat").Succeed()
	check(out, "part-00000", strings.Repeat("packed\t\n", 3))
	outside := c.file("outside.zip", strings.ReplaceAll(packed, "en/list", "../list"))
	c.mrsubmit("streaming", "-archives", outside+"#lib", "-input", in, "-output", filepath.Join(c.dir, "none"),
		"-mapper", "cat", "-reducer", "cat").Fail(1, `member "../list" leads out of the directory`)

	for i, bad := range []struct {
		header tar.Header
		want   string
	}{
		{tar.Header{Name: "../x", Typeflag: tar.TypeReg}, `member "../x" leads out of the directory`},
		{tar.Header{Name: "/x", Typeflag: tar.TypeReg}, `member "/x" has an absolute name`},
		{tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "../../x"}, `member "link"`},
		{tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, `member "null" is a device`},
	} {
		var packed bytes.Buffer
		w := tar.NewWriter(&packed)
		if err := errors.Join(w.WriteHeader(&bad.header), w.Close()); err != nil {
			t.Fatal(err)
		}
		c.mrsubmit("run", "-archives", c.file(fmt.Sprint("bad", i, ".tar"), packed.String())+"#lib", c.Program("wordcount"), "-input", in,
			"-output", filepath.Join(c.dir, "none")).Fail(1, bad.want, "the archive is refused")
	}

	out = filepath.Join(c.dir, "joined")
	c.mrsubmit("run", c.Program("leftjoin"), "-orders", c.file("orders", "order,customer,amount\n1,7,3.50\n2,8,1.00\n"),
		"-customers", c.file("customers", "id,name\n7,Ann\n"), "-output", out).Succeed()
	check(out, "part-r-00000", "order,customer,amount,name\n1,7,3.50,Ann\n2,8,1.00,\n")
}

// processesWith counts the processes that have these arguments, with a zero after each.
func processesWith(arguments string) (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, name := range all {
		if text, err := os.ReadFile(name); err == nil && string(text) == arguments {
			n++
		}
	}
	return n
}

// TestSharedArchives: jobs of an owner share one copy of an archive on a task tracker. One that was replaced, with the same size and
// modification time, is unpacked again. Another owner's job has a copy of its own. All are gone when the jobs have ended.
func TestSharedArchives(t *testing.T) {
	c := start(t, withTLS, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers, cfg.MapSlots = 1, 1, 4 })
	d := c.TaskTrackers[0]
	old := time.Now().Add(-time.Hour)
	replace := func(content string) string {
		name := c.file("lib.zip", zipped(t, content, "text"))
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
		return name
	}
	archive, gate := replace("first\n"), filepath.Join(c.dir, "gate")
	script := c.file("map.sh", "cat > /dev/null; while [ ! -e $1 ]; do sleep 0.1; done; ls -Ldi lib; cat lib/text\n")
	in, runs := c.file("in", "line\n"), make(map[string]*trial.Run)
	begin := func(user, name string) {
		runs[name] = c.asUser(user, "streaming", "-D", "mapreduce.map.speculative=false", "-archives", archive+"#lib", "-files", script,
			"-input", in, "-output", filepath.Join(c.dir, name), "-mapper", "sh map.sh "+gate, "-reducer", "NONE")
	}
	await := func(maps, copies int) {
		for _, run := range runs {
			run.Await(fmt.Sprintf("%d running scripts with %d copies", maps, copies), func() bool {
				all, _ := filepath.Glob(filepath.Join(d.Data(), "shared/*/*/files"))
				return len(all) == copies && processesWith("sh\x00map.sh\x00"+gate+"\x00") == maps
			})
		}
	}
	begin(processes.User, "one")
	begin(processes.User, "same")
	begin("bob", "bobs")
	await(3, 2)
	replace("other\n")
	begin(processes.User, "other")
	await(4, 3)
	c.file("gate", "")
	inodes, texts := make(map[string]string), map[string]string{"one": "first", "same": "first", "bobs": "first", "other": "other"}
	for name, run := range runs {
		run.Succeed()
		got, err := os.ReadFile(filepath.Join(c.dir, name, "part-00000"))
		lines := strings.Fields(string(got))
		if err != nil || len(lines) != 3 || lines[2] != texts[name] {
			t.Fatalf("job %s: %q, %v; want an inode and %s", name, got, err, texts[name])
		}
		inodes[name] = lines[0]
	}
	if inodes["one"] != inodes["same"] || inodes["one"] == inodes["bobs"] || inodes["one"] == inodes["other"] {
		t.Errorf("the inodes of the directories are %v", inodes)
	}
}

// TestKilledWhileUnpacking: a task tracker that is killed while a job unpacks an archive leaves nothing that a later attempt uses.
func TestKilledWhileUnpacking(t *testing.T) {
	c := start(t, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 1 })
	names := make([]string, 5_000)
	for i := range names {
		names[i] = fmt.Sprint("member", i)
	}
	d := c.TaskTrackers[0]
	run := c.mrsubmit("streaming", "-archives", c.file("lib.zip", zipped(t, "text", names...))+"#lib", "-input", c.file("in", "line\n"), "-output", filepath.Join(c.dir, "out"),
		"-mapper", "sh -c 'cat > /dev/null; find -L lib -type f -size 4c | wc -l'", "-reducer", "NONE")
	c.await("unpacking", func() bool {
		begun, _ := filepath.Glob(filepath.Join(d.Data(), "shared/*/*/new/*"))
		return len(begun) > 0
	})
	if err := errors.Join(d.Kill(), d.Start(), d.Ready(c.ctx)); err != nil {
		t.Fatal(err)
	}
	run.Succeed()
	if got, err := os.ReadFile(filepath.Join(c.dir, "out/part-00000")); err != nil || strings.TrimSpace(string(got)) != "5000" {
		t.Errorf("the map has seen %q members, %v", got, err)
	}
}
