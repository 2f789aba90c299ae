package hdfs_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/trial"
)

// unusedAddr returns an address on which no process listens. Other tests only use ports on
// 127.0.0.1.
func unusedAddr(t *testing.T) string {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.99:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listen.Close()
	return listen.Addr().String()
}

const otherUser = "eve" // a user without files in HDFS

// TestRefused runs both parts at the same time, because each waits for unreachable addresses.
func TestRefused(t *testing.T) {
	c := cluster(t)
	programs(t)
	for name, run := range map[string]func(*testing.T, *minicluster.Cluster){"jobs": jobsRefused, "staging": stagingRefused} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, c)
		})
	}
}

// Jobs with unusable settings are refused without leftovers. The error names the setting.
func jobsRefused(t *testing.T, c *minicluster.Cluster) {
	p := newPlatform(t, c)
	in := p.put("in", []byte("a\nb\n"))
	secret := p.put("secret", []byte("c\n"))
	p.chown(secret, jobUser, 0o600)
	private := dfs.Dir(p.put("closed/in", []byte("d\n")))
	p.chown(private, jobUser, 0o700)
	nested := dfs.Dir(dfs.Dir(p.put("nested/dir/in", []byte("e\n"))))
	local := filepath.Join(p.dir, "in")
	if err := os.WriteFile(local, []byte("f\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	badConf := filepath.Join(p.dir, "conf")
	if err := os.Mkdir(badConf, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(badConf, "core-site.xml"), []byte("<configuration>"), 0o666); err != nil {
		t.Fatal(err)
	}
	const unknown = "hdfs://nosuchservice.invalid"
	unused := "hdfs://" + unusedAddr(t)
	httpPort := "hdfs://" + c.NameNodes[0].HTTPAddr()
	out := dfs.Join(p.top, "out")
	othersDir := dfs.Dir(p.put("theirs/file", nil))
	p.chown(othersDir, otherUser, 0o755)
	runs := make(map[*trial.Run][]string)
	for _, x := range []struct {
		user, conf, in, out string
		wants               []string
	}{
		{"", "", unknown + "/in", out, []string{unknown + "/in", "neither a nameservice"}},
		{"", "", local, unknown + "/out", []string{unknown + "/out", "neither a nameservice"}},
		{"", "", unused + "/in", out, []string{unused + "/in", "connection refused"}},
		{"", "", local, unused + "/out", []string{unused + "/out", "connection refused"}},
		{"", "", httpPort + "/in", out, []string{httpPort + "/in", "no NameNode's RPC port"}},
		{"", "", p.top + "/missing", out, []string{p.top + "/missing", "not exist"}},
		{"", "", p.top + "/missing*", out, []string{p.top + "/missing*", "no file matches"}},
		{"", "", nested, out, []string{nested + "/dir", "directory"}},
		{"", "", in + "/below", out, []string{in + "/below", "not a directory"}},
		{"", "", in, in, []string{in, "exists"}},
		{"", "", in, in + "/out", []string{in + "/out", "not a directory"}},
		{otherUser, "", secret, othersDir + "/out1", []string{secret, "permission denied"}},
		{otherUser, "", private, othersDir + "/out2", []string{private, "permission denied"}},
		{otherUser, "", in, out, []string{p.top, "permission denied"}},
		{"", badConf, in, out, []string{badConf + "/core-site.xml"}},
		{"", badConf + "/missing", in, out, []string{"HADOOP_CONF_DIR", badConf + "/missing"}},
	} {
		where := p
		if x.user != "" {
			where = p.withEnv("HADOOP_USER_NAME=" + x.user)
		}
		if x.conf != "" {
			where = p.withEnv("HADOOP_CONF_DIR=" + x.conf)
		}
		runs[where.submit("wordcount", "-input", x.in, "-output", x.out)] = x.wants
	}

	// HDFS is over quota in the middle of a job.
	small := dfs.Dir(p.put("small/file", nil))
	path := strings.TrimPrefix(small, c.URL())
	if _, err := c.Admin(t.Context(), "-setSpaceQuota", "6m", path); err != nil {
		t.Fatal(err)
	}
	large := p.put("large", text(6*blockSize))
	p.submit("sort", "-input", large, "-output", small+"/out").Fail(1, small+"/out", "quota exceeded")
	p.checkNoOutput(small + "/out")

	for r, wants := range runs {
		r.Fail(1, wants...)
	}
	for _, dir := range []string{out, othersDir + "/out1", othersDir + "/out2"} {
		p.checkNoOutput(dir)
	}
}

// A job tracker with an unusable staging directory does not start, and logs the reason. A task
// tracker with one is refused. A client without write access there cannot submit.
func stagingRefused(t *testing.T, c *minicluster.Cluster) {
	p := newPlatform(t, c)
	in := p.put("in", []byte("a\n"))
	unused := "hdfs://" + unusedAddr(t)
	runs := make(map[*trial.Run][]string)
	for staging, want := range map[string]string{
		"hdfs://nosuchservice.invalid/s":      "neither a nameservice",
		unused + "/s":                         "connection refused",
		"hdfs://" + c.NameNodes[0].HTTPAddr(): "no NameNode's RPC port",
		c.URL() + "/staging-of-somebody-else": "permission denied",
		in:                                    "not a directory",
	} {
		runs[p.command("jobtracker", "-id", "jt", "-data", t.TempDir(), "-listen", "127.0.0.1:0", "-raft", "127.0.0.1:0",
			"-gossip", "127.0.0.1:0", "-bootstrap-expect", "1", "-staging", staging)] = []string{staging, want}
	}

	staging := dfs.Join(p.top, "staging")
	p.start(daemonShape{jobTrackers: 1, nodes: c.DataNodes[:1], slots: 1, staging: staging})
	other, err := p.daemons.AddTaskTracker("tt-lost")
	if err != nil {
		t.Fatal(err)
	}
	other.Env = p.withEnv("HADOOP_CONF_DIR=" + filepath.Join(p.dir, "nowhere")).env
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	trial.Await(t, "log line of the refusal", func() bool { return other.Logged("not shared with tracker tt-lost") && other.Logged("nowhere") })
	out := dfs.Join(p.top, "out")
	p.withEnv("HADOOP_USER_NAME="+otherUser).submit("wordcount", "-input", in, "-output", out).Fail(1, staging, "permission denied")
	p.checkNoOutput(out)
	byDefault := strings.TrimPrefix(p.top, c.URL())
	p.submit("wordcount", "-input", "hdfs://"+byDefault+"/in", "-output", "hdfs:"+byDefault+"/out").Succeed()
	p.checkOutput(out, []byte("a\t1\n"))
	for r, wants := range runs {
		r.Fail(1, wants...)
	}
}
