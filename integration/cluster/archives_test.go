package cluster_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestArchives: with the isolation that the machine permits, the maps of a job read files of an archive. The unpacked
// copies are gone when the job has ended. Two CSV files are joined, too.
func TestArchives(t *testing.T) {
	c := start(t, small)
	check := func(out, part, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(out, part)); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	member, err := w.Create("en/list")
	if err == nil {
		_, err = member.Write([]byte("packed\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in, out := strings.Join([]string{c.file("1", "lib/en/list\n"), c.file("2", "lib/en/list\n"), c.file("3", "lib/en/list\n")}, ","), filepath.Join(c.dir, "out")
	c.mrsubmit("streaming", "-archives", c.file("words.zip", packed.String())+"#lib", "-input", in, "-output", out,
		"-mapper", "xargs cat", "-reducer", "cat").Succeed()
	check(out, "part-00000", strings.Repeat("packed\t\n", 3))
	outside := c.file("outside.zip", strings.ReplaceAll(packed.String(), "en/list", "../list"))
	c.mrsubmit("streaming", "-archives", outside+"#lib", "-input", in, "-output", filepath.Join(c.dir, "none"),
		"-mapper", "cat", "-reducer", "cat").Fail(1, `member "../list" leads out of the directory`)

	out = filepath.Join(c.dir, "joined")
	c.mrsubmit("run", c.Program("leftjoin"), "-orders", c.file("orders", "order,customer,amount\n1,7,3.50\n2,8,1.00\n"),
		"-customers", c.file("customers", "id,name\n7,Ann\n"), "-output", out).Succeed()
	check(out, "part-r-00000", "order,customer,amount,name\n1,7,3.50,Ann\n2,8,1.00,\n")
}
