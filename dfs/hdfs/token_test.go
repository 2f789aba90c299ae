package hdfs

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/internal/membound"
)

// useTokens makes an FS that has only a token file, in the same HDFS.
func useTokens(t *testing.T, h *securedHDFS, conf Conf, file []byte) *FS {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(tokenVariable, name)
	f := New(Options{Conf: conf, Dial: h.dial, RetryFor: time.Millisecond, FirstRetryFor: time.Millisecond})
	f.login = func() (login, error) { return nil, errors.New("no login") }
	t.Cleanup(func() { f.Close() })
	return f
}

// TestDelegation: at each level, the holder of a token reads and writes as the token's user, without
// a login. A cancelled token is refused, and so is a user that the login may not act as.
func TestDelegation(t *testing.T) {
	want := bytes.Repeat([]byte("a line of the file;"), 40_000)
	for level, h := range map[string]*securedHDFS{
		"authentication": {qop: "auth", rpc: 1}, "integrity": {qop: "auth-int", rpc: 3}, "privacy": {qop: "auth-conf", rpc: 7, aes: true},
	} {
		t.Run(level, func(t *testing.T) {
			os.Unsetenv(tokenVariable)
			daemon := h.begin(t, Conf{"hadoop.rpc.protection": level, "dfs.data.transfer.protection": level, "fs.defaultFS": "hdfs://nn"})
			conf := daemon.options.Conf
			for _, user := range []string{"", "bob"} {
				file, expires, cancel, err := daemon.Delegate(user, []string{"/local", "hdfs:///d/x", "hdfs://nn/{a,b}*", "hdfs://other/x"})
				if err != nil || !expires.Equal(testExpiry) {
					t.Fatalf("as %q: %v, %v", user, expires, err)
				}
				os.Setenv(tokenVariable, "")
				f := useTokens(t, h, conf, file)
				h.fakeHDFS.mu.Lock()
				h.blocks = nil
				h.fakeHDFS.mu.Unlock()
				h.mu.Lock()
				clear(h.users)
				h.mu.Unlock()
				writeFile(t, f, want)
				if got := h.content(t); !bytes.Equal(got, want) {
					t.Errorf("as %q: DataNodes have %d of %d bytes", user, len(got), len(want))
				}
				h.mu.Lock()
				if as := map[string]string{"": "ann@" + testRealm, "bob": "bob"}[user]; !h.users[as] || len(h.users) != 1 {
					t.Errorf("as %q: users %v", user, h.users)
				}
				h.mu.Unlock()
				if _, err := f.Stat("hdfs://other/x"); !errors.Is(err, errNoToken) {
					t.Errorf("a NameNode that the configuration does not name: %v", err)
				}
				f.Close()
				os.Unsetenv(tokenVariable)
				if err := cancel(); err != nil || len(h.issued) != 0 {
					t.Errorf("as %q: %v, %d tokens are left", user, err, len(h.issued))
				}
				if _, err := useTokens(t, h, conf, file).Stat("hdfs://nn/f"); err == nil || !strings.Contains(err.Error(), "InvalidToken") {
					t.Errorf("as %q, cancelled: %v", user, err)
				}
				os.Unsetenv(tokenVariable)
			}
			_, _, _, err := daemon.Delegate("carl", []string{"hdfs://nn/x"})
			if !errors.Is(err, dfs.ErrActAs) || !strings.Contains(err.Error(), "permission denied to act as another user: User: ann@"+testRealm+" is not allowed to impersonate carl") {
				t.Errorf("as carl: %v", err)
			}
		})
	}
}

// TestActAs: each user has one view, which the NameNode allows or refuses.
func TestActAs(t *testing.T) {
	h := &securedHDFS{qop: "auth-int", rpc: 2}
	f := h.begin(t, Conf{"hadoop.rpc.protection": "integrity", "dfs.data.transfer.protection": "integrity"})
	if f.ActAs("") != f || f.ActAs("bob") != f.ActAs("bob") || f.ActAs("bob") == f.ActAs("carl") {
		t.Error("views are not one for each user")
	}
	if _, err := f.ActAs("bob").Stat("hdfs://nn/f"); err != nil {
		t.Error(err)
	}
	h.mu.Lock()
	if !h.users["bob"] || len(h.users) != 1 {
		t.Errorf("users %v", h.users)
	}
	h.mu.Unlock()
	if _, err := f.ActAs("carl").Stat("hdfs://nn/f"); !errors.Is(err, dfs.ErrActAs) {
		t.Errorf("as carl: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"bob", "dave"} {
		if _, err := f.ActAs(user).Stat("hdfs://nn/f"); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("as %s, closed: %v", user, err)
		}
	}
}

// TestNoDelegation: nothing is issued without Kerberos, or to files elsewhere.
func TestNoDelegation(t *testing.T) {
	for _, f := range []*FS{New(Options{}), New(Options{Conf: Conf{"hadoop.security.authentication": "kerberos"}})} {
		names := []string{"/local", "hdfs://nn/x"}
		if f.options.Conf != nil {
			names = names[:1]
		}
		if file, _, _, err := f.Delegate("", names); err != nil || file != nil {
			t.Errorf("%d bytes, %v", len(file), err)
		}
	}
}

// TestNewTokens: a token file is read again after it was replaced; a damaged one leaves the tokens as
// they are.
func TestNewTokens(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tokens")
	l := &tokenLogin{file: name}
	if _, err := l.find([]string{"a:1"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	for i, c := range []struct{ content, want string }{{"1", "1"}, {"2", "2"}, {"", "2"}, {"3", "3"}} {
		file := writeTokens([]token{{[]byte("i"), []byte("p" + c.content), delegationKind, "a:1"}, {kind: "other", service: "b:1"}})
		if c.content == "" {
			file = file[:7]
		}
		if err := errors.Join(os.WriteFile(name+".new", file, 0o600), os.Rename(name+".new", name)); err != nil {
			t.Fatal(err)
		}
		if got, err := l.find([]string{"1.2.3.4:1", "a:1"}); err != nil || string(got.password) != "p"+c.want {
			t.Errorf("%d: %q, %v", i, got.password, err)
		}
	}
	for _, service := range []string{"b:1", "c:1"} {
		if _, err := l.find([]string{service}); !errors.Is(err, errNoToken) {
			t.Errorf("%s: %v", service, err)
		}
	}
}

// TestTokenFiles: tokens that are written are read again, also in Hadoop's other form.
func TestTokenFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) []byte {
			return []byte(strings.Repeat("x", rapid.IntRange(0, 300).Draw(t, name)))
		}
		var want []token
		all := message("common.Credentials").ProtoReflect()
		list := all.Mutable(all.Descriptor().Fields().ByName("tokens")).List()
		for range rapid.IntRange(0, 200).Draw(t, "tokens") {
			x := token{text("identifier"), text("password"), string(text("kind")), string(text("service"))}
			want = append(want, x)
			entry := list.AppendMutable().Message()
			entry.Set(entry.Descriptor().Fields().ByName("alias"), value("a"))
			entry.Set(entry.Descriptor().Fields().ByName("token"), value(x.message().ProtoReflect()))
		}
		pb, err := proto.Marshal(all.Interface())
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range [][]byte{writeTokens(want), protowire.AppendBytes([]byte("HDTS\x01"), pb)} {
			got, err := readTokens(file)
			if err != nil || len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
				t.Fatalf("%d tokens, want %d; %v", len(got), len(want), err)
			}
		}
	})
	// As org.apache.hadoop.security.Credentials writes it.
	file, _ := hex.DecodeString("48445453" + "00" + "01" + "01" + "61" + "02" + "0007" + "01" + "09" + "04" + "6b696e64" + "03" + "613a31" + "00")
	if got, err := readTokens(file); err != nil || !reflect.DeepEqual(got, []token{{[]byte{0, 7}, []byte{9}, "kind", "a:1"}}) {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzTokenFile(f *testing.F) {
	f.Add(writeTokens([]token{{[]byte{0, 1, 'u'}, []byte("p"), delegationKind, "a:1"}}))
	f.Add([]byte("HDTS\x01\x02ab"))
	f.Fuzz(func(t *testing.T, file []byte) {
		var tokens []token
		var err error
		membound.Bound{Free: 1 << 20, PerByte: 128}.Check(t, len(file), func() { tokens, err = readTokens(file) })
		if err != nil && tokens != nil {
			t.Errorf("%v with %d tokens", err, len(tokens))
		}
		for _, x := range tokens {
			if len(x.identifier)+len(x.password)+len(x.kind)+len(x.service) > len(file) {
				t.Error("tokens that are longer than their file")
			}
			_, _ = x.user()
		}
	})
}

// TestPrincipals: each NameNode is asked for a ticket of its own, also those of a nameservice.
func TestPrincipals(t *testing.T) {
	ha := Conf{"dfs.ha.namenodes.ns": "a,b", "dfs.namenode.rpc-address.ns.a": "NN1.example:8020", "dfs.namenode.rpc-address.ns.b": "nn2.example", "fs.defaultFS": "hdfs://ns"}
	for _, c := range []struct{ principal, second, authority, addr, want string }{
		{"nn/_HOST@R", "", "ns", "NN1.example:8020", "nn/nn1.example"},
		{"nn/_HOST@R", "", "", "nn2.example:8020", "nn/nn2.example"},
		{"nn/_HOST", "hdfs/two@R", "ns", "nn2.example:8020", "hdfs/two"},
		{"nn/_HOST", "hdfs/two@R", "ns", "NN1.example:8020", "nn/nn1.example"},
		{"nn/fixed@R", "", "ns", "nn2.example:8020", "nn/fixed"},
		{"nn/_HOST@R", "", "ns", "10.0.0.7:8020", ""},
		{"nn/fixed@R", "", "ns", "10.0.0.7:8020", "nn/fixed"},
	} {
		ha[principalProperty], ha[principalProperty+".ns.b"] = c.principal, c.second
		got, err := ha.principalOf(c.authority, c.addr)
		if got != c.want || (err != nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), "_HOST@R needs the NameNode's host name") {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
	h := &securedHDFS{rpc: 2, qop: "auth-int", names: map[string]string{"NN1.example:8020": "nn/nn1.example", "nn2.example:8020": "nn/nn2.example"}, standby: "NN1.example:8020"}
	conf := Conf{principalProperty: "nn/_HOST@" + testRealm, "hadoop.rpc.protection": "integrity", "dfs.data.transfer.protection": "integrity"}
	for name, value := range ha {
		if !strings.HasPrefix(name, principalProperty) {
			conf[name] = value
		}
	}
	f := h.begin(t, conf)
	if _, err := f.Stat("hdfs://ns/f"); err != nil {
		t.Errorf("over a NameNode in standby: %v", err)
	}
	file, _, _, err := f.Delegate("", []string{"hdfs:///x"})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := readTokens(file)
	if err != nil || len(tokens) != 1 || tokens[0].service != "ha-hdfs:ns" {
		t.Errorf("%v, %v", tokens, err)
	}
	if _, err := useTokens(t, h, f.options.Conf, file).Stat("hdfs://ns/f"); err != nil {
		t.Errorf("with a token: %v", err)
	}
}
