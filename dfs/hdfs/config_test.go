package hdfs

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func conf(t *testing.T, core, site string) Conf {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"core-site.xml": core, "hdfs-site.xml": site} {
		body := new(strings.Builder)
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				name, final := strings.CutPrefix(name, "!")
				fmt.Fprintf(body, "<property><name> %s</name><value>%s\n</value><final>%v</final></property>", name, value, final)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`<?xml version="1.0"?><configuration>`+body.String()+`</configuration>`), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HADOOP_CONF_DIR", dir)
	c, err := Environment()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNameNodesOfAuthorities checks the NameNodes' addresses for kinds of authorities.
func TestNameNodesOfAuthorities(t *testing.T) {
	t.Setenv("QUERN_TEST_HOST", "h9")
	c := conf(t, `
		fs.defaultFS=hdfs://one/user
		domain=example.org
		dfs.namenode.rpc-address.two=overridden:1
		!dfs.namenode.rpc-address.four=h5:1`, `
		dfs.nameservices=one, two,three
		dfs.ha.namenodes.one=a, b
		dfs.namenode.rpc-address.one.a=h1.${domain}:9000
		dfs.namenode.rpc-address.one.b=${env.QUERN_TEST_HOST}
		dfs.namenode.rpc-address.two=h3:9001
		dfs.namenode.rpc-address.four=overriding:1
		dfs.ha.namenodes.three=x
		dfs.namenode.rpc-address=h4:1`)
	for authority, want := range map[string]string{
		"": "h1.example.org:9000 h9:8020", "one": "h1.example.org:9000 h9:8020", "two": "h3:9001", "four": "h5:1",
		"h7": "h7:8020", "h7:1234": "h7:1234", "one:1": "one:1", "three": "error",
	} {
		got, err := c.nameNodes(authority)
		if err != nil {
			got = []string{"error"}
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q is %v, %v; want %s", authority, got, err, want)
		}
	}
	if _, err := (Conf{}).nameNodes(""); err == nil {
		t.Error("hdfs:/// works without a configuration")
	}
}

func TestConf(t *testing.T) {
	c := Conf{"a": "${b}", "b": "${a}", "n": "64M", "k": "4k", "bad": "x", "neg": "-1", "huge": "99999999999t", "on": "True"}
	c.get("a") // must end
	for name, want := range map[string]int64{"n": 64 << 20, "k": 4096, "bad": -1, "neg": -1, "huge": -1, "none": 0} {
		if got, err := c.size(name); want < 0 && (err == nil || !strings.Contains(err.Error(), name)) || want >= 0 && (got != want || err != nil) {
			t.Errorf("size %s is %d, %v, want %d", name, got, err, want)
		}
	}
	for text, want := range map[string]time.Duration{"": 0, "0": 0, "1440": 24 * time.Hour, "0.5": 30 * time.Second, "-1": 0, "1e30": 1e8 * time.Minute, "x": -1, "NaN": -1, "1d": -1} {
		got, err := Conf{"fs.trash.interval": text}.TrashInterval()
		if want < 0 && (err == nil || !strings.Contains(err.Error(), "fs.trash.interval")) || want >= 0 && (got != want || err != nil) {
			t.Errorf("trash interval %q is %v, %v, want %v", text, got, err, want)
		}
	}
	if !c.flag("on") || c.flag("n") {
		t.Error("flags")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "core-site.xml"), []byte("<configuration><prop"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadConf(dir); err == nil || !strings.Contains(err.Error(), "core-site.xml") {
		t.Errorf("a broken file: %v", err)
	}
	t.Setenv("HADOOP_CONF_DIR", filepath.Join(dir, "none"))
	if _, err := FromEnvironment().Stat("hdfs://nn/x"); err == nil || !strings.Contains(err.Error(), "HADOOP_CONF_DIR") {
		t.Errorf("a missing HADOOP_CONF_DIR: %v", err)
	}
}

// TestOverlaid: -conf wins over the files of the environment, except over final properties, and -D over all.
func TestOverlaid(t *testing.T) {
	conf(t, `
		plain=site
		!final=site
		!set=site
		variable=${given}`, "")
	got, notes, err := Overlaid(map[string]string{"plain": " more\n", "final": "more", "given": "more"}, map[string]string{"given": "set ", "set": "set"})
	want := Conf{"plain": "more", "final": "site", "set": "set", "variable": "${given}", "given": "set"}
	if err != nil || !maps.Equal(got, want) || got.Value("variable") != "set" {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if want := []string{"property final of -conf has no effect: it is final in core-site.xml"}; !slices.Equal(notes, want) {
		t.Errorf("notes %q, want %q", notes, want)
	}
}

// TestReads: every property in the code of this package counts as read.
func TestReads(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, property := range regexp.MustCompile(`"((?:fs|dfs|hadoop)\.[a-z][\w.-]+)"`).FindAllStringSubmatch(string(text), -1) {
			found++
			if !Reads(strings.TrimSuffix(property[1], ".")) && !Reads(property[1]+"x") {
				t.Errorf("%s: %s is not read", name, property[1])
			}
		}
	}
	if found < 15 || Reads("dfs.client.socket-timeout") || Reads("dfs.replication.max") {
		t.Errorf("%d properties", found)
	}
}

// TestSecurityIsRefusedByName checks that errors name the missing parts of a Kerberos
// configuration.
func TestSecurityIsRefusedByName(t *testing.T) {
	t.Setenv("KRB5_CONFIG", filepath.Join(t.TempDir(), "none"))
	kerberos := Conf{"hadoop.security.authentication": "kerberos", "dfs.namenode.kerberos.principal": "nn/_HOST@R"}
	f := New(Options{Conf: kerberos, User: "u"})
	if _, err := f.Stat("hdfs://nn/x"); err == nil || !strings.Contains(err.Error(), "kerberos") {
		t.Errorf("without tickets: %v", err)
	}
	delete(kerberos, "dfs.namenode.kerberos.principal")
	if _, err := f.Stat("hdfs://nn/x"); err == nil || !strings.Contains(err.Error(), "dfs.namenode.kerberos.principal") {
		t.Errorf("without a principal: %v", err)
	}
}

func TestLocalAddr(t *testing.T) {
	faces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	loopback := slices.IndexFunc(faces, func(f net.Interface) bool { return f.Flags&net.FlagLoopback != 0 })
	if loopback < 0 {
		t.Skip("no loopback interface")
	}
	for value, want := range map[string]string{
		"": "", "127.0.0.3": "127.0.0.3:0", " 127.0.0.4, eth9": "127.0.0.4:0", faces[loopback].Name: "127.0.0.1:0",
	} {
		addr, err := Conf{"dfs.client.local.interfaces": value}.localAddr()
		got := ""
		if addr != nil {
			got = addr.String()
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", value, got, err, want)
		}
	}
	f := New(Options{Conf: Conf{"dfs.client.local.interfaces": "nosuch0"}})
	if _, err := f.Stat("hdfs://nn/x"); err == nil || !strings.Contains(err.Error(), `"nosuch0" is neither`) {
		t.Errorf("no such interface: %v", err)
	}
}
