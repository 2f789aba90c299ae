package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce/streaming"
)

// TestStreamingArchives: an archive that leads out of its directory fails the job, and the error names the member.
func TestStreamingArchives(t *testing.T) {
	for _, c := range []struct {
		header tar.Header
		stderr string
	}{
		{tar.Header{Name: "../x", Typeflag: tar.TypeReg}, `"../x" leads out`},
		{tar.Header{Name: "a/../../x", Typeflag: tar.TypeReg}, "leads out"},
		{tar.Header{Name: "/x", Typeflag: tar.TypeReg}, `"/x" has an absolute name`},
		{tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "../../x"}, `"link"`},
		{tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, `"link"`},
		{tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, `"null"`},
		{tar.Header{Name: "pipe", Typeflag: tar.TypeFifo}, `"pipe"`},
	} {
		dir := t.TempDir()
		var packed bytes.Buffer
		w := tar.NewWriter(&packed)
		if err := w.WriteHeader(&c.header); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "a.tar"), packed.String())
		write(t, filepath.Join(dir, "in"), "line\n")
		code, stderr := streamed(t, dir, "-quiet", "-archives", "a.tar#lib", "-input", "in", "-output", "out", "-mapper", "cat", "-reducer", "NONE")
		checkStreamed(t, code, stderr, []string{c.stderr, "the archive is refused"})
	}
}

// TestStreamingUnnamedArchive: without #NAME the directory has the archive's name, also in the property.
func TestStreamingUnnamedArchive(t *testing.T) {
	dir := t.TempDir()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	err := w.WriteHeader(&tar.Header{Name: "x.txt", Typeflag: tar.TypeReg, Size: 1, Mode: 0o600})
	if _, wrong := w.Write([]byte("a")); err != nil || wrong != nil {
		t.Fatal(err, wrong)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "b.tar"), packed.String())
	write(t, filepath.Join(dir, "in"), "b.tar/x.txt\n")
	for i, option := range [][]string{{"-archives", "b.tar"}, {"-D", "mapreduce.job.cache.archives=b.tar"}} {
		out := fmt.Sprint("out", i)
		code, stderr := streamed(t, dir, append(append([]string{"-quiet"}, option...), "-input", "in", "-output", out, "-mapper", "xargs cat", "-reducer", "NONE")...)
		checkStreamed(t, code, stderr, nil)
		if got, err := os.ReadFile(filepath.Join(dir, out, "part-00000")); err != nil || string(got) != "a\t\n" {
			t.Errorf("%q: %v: %q", option, err, got)
		}
	}
}

// TestStreamingFileURL: a side file or an archive may be named by a URL.
func TestStreamingFileURL(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in"), "line\n")
	write(t, filepath.Join(dir, "a b.sh"), "cat; echo done")
	for _, prefix := range []string{"file://", "file:", "file://localhost"} {
		if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		code, stderr := streamed(t, dir, "-quiet", "-files", prefix+dir+"/a b.sh#s.sh", "-input", "in", "-output", "out", "-mapper", "sh s.sh", "-reducer", "NONE")
		checkStreamed(t, code, stderr, nil)
	}
	command, err := streaming.Parse([]string{"-files", "file://" + dir + "/in", "-input", "in", "-output", "out", "-mapper", "cat"}, dir)
	if err != nil || strings.Contains(command.Job.Files["in"], ":") {
		t.Errorf("%v: %q is no local path, so it is not uploaded", err, command.Job.Files["in"])
	}
}

// TestStreamingDebug: a script for failed commands gets four files, and its output is in the error.
func TestStreamingDebug(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in"), "line\n")
	write(t, filepath.Join(dir, "debug"), `echo $# arguments, $1; echo output: $(wc -c < $2); cat "$3"; echo errors: $(grep -c "failed with code 3" $4); grep -o "<name>a.b</name><value>&lt;c&gt;" $5`)
	for _, c := range []struct{ mapper, reducer string }{{"sh -c 'cat; echo sorry >&2; exit 3'", "cat"}, {"cat", "sh -c 'cat; echo sorry >&2; exit 3'"}} {
		code, stderr := streamed(t, dir, "-quiet", "-D", "mapreduce.map.maxattempts=1", "-D", "mapreduce.reduce.maxattempts=1", "-D", "a.b=<c>", "-files", "debug",
			"-input", "in", "-output", "out", "-mapper", c.mapper, "-reducer", c.reducer, "-mapdebug", "sh debug first", "-reducedebug", "sh debug first")
		checkStreamed(t, code, stderr, []string{"failed with code 3", `"sh debug first" wrote:`, "5 arguments, first", "output: 0\n", "sorry", "errors: 1\n", "<name>a.b</name><value>&lt;c&gt;"})
	}
	code, stderr := streamed(t, dir, "-quiet", "-D", "mapreduce.map.maxattempts=1", "-files", "debug", // the script has no line such as #!/bin/sh
		"-input", "in", "-output", "out", "-mapper", "sh -c 'exit 3'", "-reducer", "NONE", "-mapdebug", "debug first")
	checkStreamed(t, code, stderr, []string{"failed with code 3", `"debug first"`, "5 arguments, first"})
	code, stderr = streamed(t, dir, "-quiet", "-D", "mapreduce.map.maxattempts=1", "-input", "in", "-output", "out", "-mapper", "sh -c 'exit 3'", "-reducer", "NONE", "-mapdebug", "no-such-script")
	checkStreamed(t, code, stderr, []string{"failed with code 3", "no-such-script"})
}

// TestStreamingVerbose: the properties are printed as Hadoop prints them.
func TestStreamingVerbose(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in"), "line\n")
	_, out := streamed(t, dir, "-quiet", "-D", "a.b=c", "-input", "in", "-output", "out", "-mapper", "cat", "-reducer", "NONE", "-verbose")
	if !strings.Contains(out, "STREAM: a.b=c\n") {
		t.Errorf("-verbose printed %q", out)
	}
}

// TestStreamingCombiner: the output of a combiner may need more memory than the sort has.
func TestStreamingCombiner(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in"), strings.Repeat("b\na\n", 100_000))
	code, stderr := streamed(t, dir, "-quiet", "-D", "mapreduce.task.io.sort.mb=1", "-input", "in", "-output", "out", "-mapper", "cat", "-combiner", "cat", "-reducer", "uniq -c")
	checkStreamed(t, code, stderr, nil)
	if got, err := os.ReadFile(filepath.Join(dir, "out/part-00000")); err != nil || strings.Join(strings.Fields(string(got)), " ") != "100000 a 100000 b" {
		t.Errorf("%v: %q", err, got)
	}
}

// TestStreamingKeptFiles: files that a command puts into the attempt's output directory become part of the output. Those of
// failed attempts do not, and what cannot be published is refused by name.
func TestStreamingKeptFiles(t *testing.T) {
	const script = `d=${mapreduce_task_output_dir#file:}
test "$d" = "${mapred_work_output_dir#file:}" || exit 4
case $mapreduce_task_attempt_id in *000) echo left > "$d/failed"; echo left > "$d/side"; cat > /dev/null; exit 1;; esac
echo "$1" > "$d/side"
cat
`
	for name, c := range map[string]struct {
		options []string
		command string
		want    string // names, and the content of side
		fail    string
	}{
		"map":          {[]string{"-mapper", "sh script map", "-reducer", "NONE"}, script, "part-00000 side map\n", ""},
		"reduce":       {[]string{"-mapper", "cat", "-reducer", "sh script reduce"}, script, "part-00000 side reduce\n", ""},
		"lazy":         {[]string{"-mapper", "sh script map", "-reducer", "NONE", "-lazyOutput"}, strings.Replace(script, "\ncat\n", "\ncat > /dev/null\n", 1), "side map\n", ""},
		"not set":      {[]string{"-mapper", "sh script", "-reducer", "cat"}, `cat; ! env | grep -E "^(mapreduce_task_output_dir|mapred_work_output_dir)="`, "part-00000 ", ""},
		"directory":    {[]string{"-mapper", "sh script", "-reducer", "NONE"}, `mkdir "${mapred_work_output_dir#file:}/sub"; cat`, "", "has put sub into its output directory, which is refused: it is a directory"},
		"link":         {[]string{"-mapper", "sh script", "-reducer", "NONE"}, `ln -s /etc/passwd "${mapred_work_output_dir#file:}/x"; cat`, "", "has put x into its output directory, which is refused: it is not a regular file"},
		"reserved":     {[]string{"-mapper", "sh script", "-reducer", "NONE"}, `echo > "${mapred_work_output_dir#file:}/_SUCCESS"; cat`, "", "has put _SUCCESS into its output directory, which is refused: the name is reserved"},
		"of two tasks": {[]string{"-numReduceTasks", "2", "-mapper", "cat", "-reducer", "sh script"}, `cat; echo > "${mapred_work_output_dir#file:}/x"`, "", "x exists: another task or another program has written it"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "in"), "a\nb\nc\nd\n")
		write(t, filepath.Join(dir, "script"), c.command)
		code, stderr := streamed(t, dir, append([]string{"-quiet", "-D", "mapreduce.map.maxattempts=2", "-D", "mapreduce.reduce.maxattempts=2", "-files", "script", "-input", "in", "-output", "out"}, c.options...)...)
		if c.fail != "" {
			checkStreamed(t, code, stderr, []string{c.fail})
			continue
		}
		checkStreamed(t, code, stderr, nil)
		names, err := filepath.Glob(filepath.Join(dir, "out", "[^_.]*"))
		side, _ := os.ReadFile(filepath.Join(dir, "out", "side"))
		if got := strings.ReplaceAll(strings.Join(names, " "), filepath.Join(dir, "out")+"/", "") + " " + string(side); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// TestStreamingDirectory: -files takes directories, and #NAME is the name of one in the working directory.
func TestStreamingDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "lib/sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "lib/sub/x.txt"), "x\n")
	write(t, filepath.Join(dir, "lib/run"), "cat > /dev/null; cat lib/sub/x.txt other/sub/x.txt\n")
	write(t, filepath.Join(dir, "in"), "line\n")
	for i, options := range [][]string{{"-files", "lib,lib#other"}, {"-file", "lib", "-file", "file:" + dir + "/lib/#other"}, {"-files", "file://" + dir + "/lib,lib#other"}} {
		out := fmt.Sprint("out", i)
		code, stderr := streamed(t, dir, append(append([]string{"-quiet"}, options...), "-input", "in", "-output", out, "-mapper", "sh lib/run", "-reducer", "NONE")...)
		if got, err := os.ReadFile(filepath.Join(dir, out, "part-00000")); code != 0 || err != nil || string(got) != "x\t\nx\t\n" {
			t.Errorf("%s: exit code %d, %q, %v: %s", options, code, got, err, stderr)
		}
	}
	code, stderr := streamed(t, dir, "-archives", "lib", "-input", "in", "-output", "none", "-mapper", "cat", "-reducer", "NONE")
	checkStreamed(t, code, stderr, []string{"archive lib is a directory: use -files"})
	if out, err := exec.Command("mkfifo", filepath.Join(dir, "lib/pipe")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	code, stderr = streamed(t, dir, "-quiet", "-files", "lib", "-input", "in", "-output", "none", "-mapper", "cat", "-reducer", "NONE")
	checkStreamed(t, code, stderr, []string{"lib/pipe is not a regular file"})
}

// TestStreamingOwnFiles: commands may write into the files and directories of -files. Those that the user named stay as they are.
func TestStreamingOwnFiles(t *testing.T) {
	dir := t.TempDir()
	const script = "cat; echo cache > lib/sub/cache; echo more >> lib/x; echo more >> tool; echo more >> plain\n"
	contents := map[string]string{"lib/x": "x\n", "lib/sub/y": "y\n", "lib/run": script, "tool": "#!/bin/sh\nlib/run\n", "plain": "plain\n"}
	for name, content := range contents {
		write(t, filepath.Join(dir, name), content)
	}
	for _, name := range []string{"lib/run", "tool"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "in/a"), "a\n")
	write(t, filepath.Join(dir, "in/b"), "b\n")
	code, stderr := streamed(t, dir, "-quiet", "-files", "lib,tool,plain", "-input", "in", "-output", "out", "-mapper", "./tool", "-reducer", "cat")
	checkStreamed(t, code, stderr, nil)
	for name, want := range contents {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if names, err := filepath.Glob(filepath.Join(dir, "lib/sub/*")); err != nil || len(names) != 1 {
		t.Errorf("%q, %v", names, err)
	}
}

// TestStreamingPWD: PWD is the working directory, also of commands other than shells, which set it themselves.
func TestStreamingPWD(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in"), "a\n")
	write(t, filepath.Join(dir, "pwd.awk"), `{ "pwd -P" | getline dir; print ENVIRON["PWD"] == dir ? "same" : ENVIRON["PWD"] " is not " dir }`)
	code, stderr := streamed(t, dir, "-quiet", "-files", "pwd.awk", "-input", "in", "-output", "out", "-mapper", "awk -f pwd.awk", "-reducer", "NONE")
	checkStreamed(t, code, stderr, nil)
	if got, err := os.ReadFile(filepath.Join(dir, "out/part-00000")); err != nil || string(got) != "same\t\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestStreamingNullOutput: records of NullOutputFormat are counted and dropped. Files that the command has put beside them stay.
func TestStreamingNullOutput(t *testing.T) {
	for class, reducer := range map[string]string{"org.apache.hadoop.mapred.lib.NullOutputFormat": "NONE", "NullOutputFormat": "cat"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "in"), "a\nb\n")
		write(t, filepath.Join(dir, "script"), `cat; test -z "$mapred_work_output_dir" || echo kept > "${mapred_work_output_dir#file:}/side"`)
		code, stderr := streamed(t, dir, "-files", "script", "-input", "in", "-output", "out", "-outputformat", class, "-mapper", "sh script", "-reducer", reducer)
		names, err := filepath.Glob(filepath.Join(dir, "out", "*"))
		want, counter := "_SUCCESS", "Reduce output records=2"
		if reducer == "NONE" {
			want, counter = "_SUCCESS side", "Map output records=2"
		}
		if got := strings.ReplaceAll(strings.Join(names, " "), filepath.Join(dir, "out")+"/", ""); code != 0 || err != nil || got != want || !strings.Contains(stderr, counter) {
			t.Errorf("%s: exit code %d, %v, the output has %q, want %q and %s: %s", class, code, err, got, want, counter, stderr)
		}
	}
}
