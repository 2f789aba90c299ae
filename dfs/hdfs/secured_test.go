package hdfs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs/hdfs/sasl"
)

// TestSecured: at each level of protection a file that was written reads back, by reads of all
// lengths. Its bytes are readable on the network below privacy only.
func TestSecured(t *testing.T) {
	want := bytes.Repeat([]byte("a line of the file;"), 19_000)
	for what, c := range map[string]struct {
		demand   string // levels of both properties
		hdfs     *securedHDFS
		rpc, tcp bool // sealed messages are readable on the network
	}{
		"authentication":             {demand: "authentication", hdfs: &securedHDFS{qop: "auth", rpc: 1}},
		"integrity":                  {demand: "integrity", hdfs: &securedHDFS{qop: "auth-int", rpc: 2}, rpc: true, tcp: true},
		"privacy":                    {demand: "privacy", hdfs: &securedHDFS{qop: "auth-conf", rpc: 4}},
		"privacy, AES":               {demand: "privacy", hdfs: &securedHDFS{qop: "auth-conf", rpc: 4, aes: true}},
		"integrity of all":           {demand: "integrity", hdfs: &securedHDFS{qop: "auth,auth-conf,auth-int", rpc: 7}, rpc: true, tcp: true},
		"privacy of all":             {demand: "privacy,integrity", hdfs: &securedHDFS{qop: "auth,auth-int,auth-conf", rpc: 7, aes: true}},
		"more than demanded":         {demand: "authentication", hdfs: &securedHDFS{qop: "auth-conf", rpc: 4}},
		"encryption key":             {demand: "authentication", hdfs: &securedHDFS{qop: "auth-conf", rpc: 2, encrypts: true}, rpc: true},
		"encryption key, AES, old":   {demand: "privacy", hdfs: &securedHDFS{qop: "auth-conf", rpc: 4, encrypts: true, aes: true, oldKey: true}},
		"DataNode breaks off":        {demand: "integrity", hdfs: &securedHDFS{qop: "auth-int", rpc: 2, breaks: true}, rpc: true, tcp: true},
		"privileged port":            {demand: "authentication", hdfs: &securedHDFS{rpc: 1, port: 1004}},
		"DataNode fails":             {demand: "privacy", hdfs: &securedHDFS{qop: "auth-conf", rpc: 4, fakeHDFS: &fakeHDFS{nodes: 4, fails: nodeAt(1), room: 100_000}}},
		"another level is announced": {demand: "privacy", hdfs: &securedHDFS{qop: "auth-conf", rpc: 4, unsigned: "auth"}},
	} {
		t.Run(what, func(t *testing.T) {
			h := c.hdfs
			f := h.begin(t, Conf{"hadoop.rpc.protection": c.demand, "dfs.data.transfer.protection": c.demand})
			writeFile(t, f, want)
			if got := h.content(t); !bytes.Equal(got, want) {
				t.Errorf("DataNodes have %d of %d bytes", len(got), len(want))
			}
			for _, size := range []int{77, 4096, 1 << 20} {
				r, err := f.Open("hdfs://nn/f")
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(shortReader{r, size})
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("reads of %d bytes: %d of %d bytes, %v", size, len(got), len(want), err)
				}
				some := make([]byte, 150_001)
				if _, err := r.ReadAt(some, 200_007); err != nil || !bytes.Equal(some, want[200_007:][:len(some)]) {
					t.Errorf("read at an offset: %v", err)
				}
				r.Close()
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if !h.users["ann@"+testRealm] || len(h.users) != 1 {
				t.Errorf("users %v", h.users)
			}
			if bytes.Contains(h.overRPC, []byte("getFileInfo")) != c.rpc || bytes.Contains(h.overTCP, want[:100]) != c.tcp {
				t.Errorf("readable on the network: %t to the NameNode, %t to DataNodes", !c.rpc, !c.tcp)
			}
			if sealed := strings.HasPrefix(h.qop, "auth-") || c.demand != "authentication"; sealed != (len(h.overTCP) > len(want)) {
				t.Errorf("%d sealed bytes", len(h.overTCP))
			}
		})
	}
}

func writeFile(t *testing.T, f *FS, content []byte) {
	t.Helper()
	w, err := f.Create("hdfs://nn/f")
	if err != nil {
		t.Fatal(err)
	}
	for piece := range slices.Chunk(content, 100_003) {
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// shortReader reads at most so many bytes at a time.
type shortReader struct {
	r    io.Reader
	size int
}

func (r shortReader) Read(p []byte) (int, error) { return r.r.Read(p[:min(len(p), r.size)]) }

// TestWeakerServer: a server that offers less than the configuration demands gets no request;
// the error names both, and comes at once.
func TestWeakerServer(t *testing.T) {
	for what, c := range map[string]struct {
		hdfs *securedHDFS
		conf Conf
		want string
	}{
		"NameNode": {&securedHDFS{qop: "auth-conf", rpc: 1}, Conf{"hadoop.rpc.protection": "integrity"},
			"NameNode: nn:8020: authenticate: weaker protection than configured: it offers authentication, hadoop.rpc.protection demands integrity"},
		"NameNode, unsigned": {&securedHDFS{qop: "auth-conf", rpc: 3, unsigned: "auth-conf"}, Conf{"hadoop.rpc.protection": "privacy"},
			"it offers authentication, integrity, hadoop.rpc.protection demands privacy"},
		"DataNode": {&securedHDFS{qop: "auth,auth-int", rpc: 1}, Conf{"dfs.data.transfer.protection": "privacy"},
			":9866: authenticate: weaker protection than configured: it offers authentication, integrity, dfs.data.transfer.protection demands privacy"},
		"privileged port": {&securedHDFS{rpc: 2, port: 1004}, Conf{"dfs.data.transfer.protection": "privacy,integrity"},
			"it offers authentication, dfs.data.transfer.protection demands privacy, integrity"},
		"encrypting NameNode": {&securedHDFS{qop: "auth-int", rpc: 1, encrypts: true}, Conf{},
			"it offers integrity, dfs.encrypt.data.transfer demands privacy"},
		"cipher": {&securedHDFS{qop: "auth-conf", rpc: 1, cipher: "3des"}, Conf{"dfs.data.transfer.protection": "privacy"},
			`ciphers "3des" (dfs.encrypt.data.transfer.algorithm) without rc4: not supported`},
	} {
		t.Run(what, func(t *testing.T) {
			h := c.hdfs
			f := h.begin(t, c.conf)
			w, err := f.Create("hdfs://nn/f")
			if err == nil {
				_, err = w.Write(make([]byte, 1<<20))
				err = errors.Join(err, w.Close())
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			h.fakeHDFS.mu.Lock()
			h.blocks, h.data[1] = []uint64{1}, make([]byte, 1000)
			h.fakeHDFS.mu.Unlock()
			r, err := f.Open("hdfs://nn/f")
			if err == nil {
				_, err = r.Read(make([]byte, 10))
				r.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if n := h.count("addBlock"); n > 1 {
				t.Errorf("%d blocks were asked for", n)
			}
		})
	}
}

// TestForgedErrors: an error that is not signed does not pass for the NameNode's answer. The call is
// repeated on another connection.
func TestForgedErrors(t *testing.T) {
	for _, when := range []int{inHandshake, afterHandshake} {
		h := &securedHDFS{rpc: 2, qop: "auth-int", forged: when}
		f := h.begin(t, Conf{"hadoop.rpc.protection": "integrity", "dfs.data.transfer.protection": "integrity"})
		if _, err := f.Stat("hdfs://nn/f"); err != nil || h.forged != 0 {
			t.Errorf("%d: %v; is to be forged: %d", when, err, h.forged)
		}
	}
}

// TestDemands: a configuration that cannot be met is refused.
func TestDemands(t *testing.T) {
	for _, c := range []struct {
		conf Conf
		want string
	}{
		{Conf{"hadoop.rpc.protection": "authentication"}, ""},
		{Conf{"hadoop.rpc.protection": "authentication,privacy"}, ""},
		{Conf{"hadoop.rpc.protection": "privacy"}, "hadoop.rpc.protection demands privacy, which needs hadoop.security.authentication=kerberos"},
		{Conf{"dfs.data.transfer.protection": "integrity"}, "dfs.data.transfer.protection demands integrity, which needs hadoop.security.authentication=kerberos"},
		{Conf{"hadoop.rpc.protection": "secret"}, `hadoop.rpc.protection: "secret" is not one of authentication, integrity, privacy`},
		{Conf{"hadoop.security.authentication": "kerberos"}, "no dfs.namenode.kerberos.principal"},
	} {
		_, err := c.conf.security(nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.conf, err, c.want)
		}
	}
}

// namedLogin is a login that counts its uses.
type namedLogin struct {
	user string
	used *int
}

func (l namedLogin) name() string { return l.user }

func (l namedLogin) begin(string) ([]byte, *sasl.GSS, error) {
	*l.used++
	return nil, nil, nil
}

// TestRenewedTickets: a credential cache is read again after a change, and only then. A damaged one
// leaves the tickets as they are, another user's is refused.
func TestRenewedTickets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache")
	var loads, uses int
	content := "ann"
	load := func(string) (login, error) {
		if loads++; content == "" {
			return nil, errMalformed
		}
		return namedLogin{content, &uses}, nil
	}
	change := func(to string, at int64) {
		content = to
		if err := errors.Join(os.WriteFile(file, []byte(to), 0o600), os.Chtimes(file, time.Unix(at, 0), time.Unix(at, 0))); err != nil {
			t.Fatal(err)
		}
	}
	change("ann", 1)
	l, err := newCacheLogin(file, load)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		content     string
		at          int64
		loads, uses int // afterwards
	}{{"ann", 1, 1, 1}, {"ann", 2, 2, 2}, {"", 3, 3, 3}, {"ann", 4, 4, 4}, {"ann", 4, 4, 5}, {"bob", 5, 5, 5}, {"ann", 6, 6, 6}} {
		change(c.content, c.at)
		_, _, err := l.begin("nn")
		if loads != c.loads || uses != c.uses || (err != nil) != (c.content == "bob") || l.name() != "ann" {
			t.Errorf("%d: %d loads, %d uses, %s, %v", i, loads, uses, l.name(), err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.begin("nn"); err != nil {
		t.Errorf("without a file: %v", err)
	}
}
