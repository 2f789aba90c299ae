package hdfs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	client "github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/proto"

	"github.com/quernmr/quern/dfs"
)

// Options configures an FS.
type Options struct {
	Conf Conf   // nil: empty; then every URL needs a host and port
	User string // default: HADOOP_USER_NAME, else the user of this process

	// RetryFor limits the retries of a call if the NameNode does not respond, is standby or
	// in safe mode. FirstRetryFor replaces it until the NameNode's first response. Defaults:
	// 60 and 15 seconds.
	RetryFor, FirstRetryFor time.Duration

	// ReadRetryFor limits the retries of reading a block if no DataNode serves it. Default:
	// 10 s.
	ReadRetryFor time.Duration

	// Timeout limits connecting, a NameNode's response, and each read or write on a
	// DataNode's connection. Default: 20 s. Connecting takes at most 5 s.
	Timeout time.Duration

	// RetryNodeAfter is the time after which a failed DataNode is read from again. Default:
	// one minute.
	RetryNodeAfter time.Duration

	// Dial dials NameNodes and DataNodes. The default is a net.Dialer, from the address of
	// dfs.client.local.interfaces in Conf, if set: HDFS uses the source address as the
	// reader's location.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// FS is the HDFS file system, for all authorities.
type FS struct {
	options Options
	conf    func() (Conf, error)
	login   func() (login, error) // with Kerberos
	actsAs  string                // see As; empty: the login's user
	closed  chan struct{}
	once    sync.Once

	mu       sync.Mutex
	clusters map[string]*cluster // by authority
	acting   map[string]*FS      // see ActAs, by user
}

var (
	_ dfs.FS      = (*FS)(nil)
	_ dfs.Locator = (*FS)(nil)
)

// New makes an FS. It does not connect yet.
func New(o Options) *FS {
	o.RetryFor = cmp.Or(o.RetryFor, time.Minute)
	o.FirstRetryFor = cmp.Or(o.FirstRetryFor, 15*time.Second)
	o.ReadRetryFor = cmp.Or(o.ReadRetryFor, 10*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 20*time.Second)
	o.RetryNodeAfter = cmp.Or(o.RetryNodeAfter, time.Minute)
	return &FS{options: o, closed: make(chan struct{}), clusters: make(map[string]*cluster), login: sharedLogin(kerberos),
		conf: func() (Conf, error) { return o.Conf, nil }}
}

// FromEnvironment makes an FS with the configuration in HADOOP_CONF_DIR, else in
// HADOOP_HOME, else an empty one.
func FromEnvironment() *FS { return Configured(Environment) }

// Configured makes an FS with the configuration that conf reads. The first use calls it, so errors in it do not affect
// processes without HDFS.
func Configured(conf func() (Conf, error)) *FS {
	f := New(Options{})
	f.conf = sync.OnceValues(conf)
	return f
}

// Close closes all connections. Open files fail.
func (f *FS) Close() error {
	f.once.Do(func() { close(f.closed) })
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, other := range f.acting {
		other.Close()
	}
	for _, c := range f.clusters {
		c.mu.Lock()
		for _, conn := range c.clients {
			conn.retired = true
			conn.close()
		}
		c.clients = nil
		c.mu.Unlock()
	}
	return nil
}

// resolve returns the cluster and path of a URL, and the cleaned URL.
func (f *FS) resolve(op, name string) (*cluster, string, string, error) {
	clean, err := dfs.Clean(name)
	if err != nil {
		return nil, "", "", err
	}
	rest, ok := strings.CutPrefix(clean, "hdfs://")
	if !ok {
		return nil, "", "", failure(op, name, fs.ErrInvalid)
	}
	select {
	case <-f.closed:
		return nil, "", "", failure(op, clean, fs.ErrClosed)
	default:
	}
	authority, path, _ := strings.Cut(rest, "/")
	c, err := f.cluster(authority)
	if err != nil {
		return nil, "", "", failure(op, clean, err)
	}
	return c, "/" + path, clean, nil
}

// cluster returns the cluster of an authority.
func (f *FS) cluster(authority string) (c *cluster, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c = f.clusters[authority]; c == nil {
		if c, err = f.connectTo(authority); err == nil {
			f.clusters[authority] = c
		}
	}
	return c, err
}

func (f *FS) connectTo(authority string) (*cluster, error) {
	conf, err := f.conf()
	if err != nil {
		return nil, err
	}
	addrs, err := conf.nameNodes(authority)
	if err != nil {
		return nil, err
	}
	userName := cmp.Or(f.actsAs, f.options.User)
	if userName == "" {
		userName = os.Getenv("HADOOP_USER_NAME")
	}
	if userName == "" {
		self, err := user.Current()
		if err != nil {
			return nil, fmt.Errorf("find the user name for HDFS: %w; set HADOOP_USER_NAME", err)
		}
		userName = self.Username
	}
	dial := f.options.Dial
	if dial == nil {
		local, err := conf.localAddr()
		if err != nil {
			return nil, err
		}
		dial = (&net.Dialer{LocalAddr: local}).DialContext
	}
	options := client.ClientOptions{Addresses: addrs, User: userName, UseDatanodeHostname: conf.flag("dfs.client.use.datanode.hostname")}
	security, err := conf.security(f.login)
	if err != nil {
		return nil, err
	}
	if security.login != nil {
		options.User = cmp.Or(f.actsAs, security.login.name())
	}
	c := &cluster{fs: f, conf: conf, connectFrom: dial, authority: authority, name: "quern_" + rand.Text(), byName: options.UseDatanodeHostname,
		security: security, options: options,
		creating: make(map[string]bool), badNodes: make(map[string]badNode)}
	c.connected.L = &c.mu
	if security.tokens != nil {
		t, err := c.token()
		if err != nil {
			return nil, err
		}
		if c.options.User, err = t.user(); err != nil {
			return nil, fmt.Errorf("delegation token for %s: %w", t.service, err)
		}
	}
	return c, nil
}

// token returns the delegation token for the cluster's NameNodes.
func (c *cluster) token() (token, error) {
	return c.security.tokens.find(c.conf.tokenServices(c.authority, c.options.Addresses))
}

// call sends an idempotent request to a NameNode, with retries.
func (c *cluster) call(method string, req, resp proto.Message) error {
	return c.retry(func(conn *pooledConn, _ retryState) error { return conn.remote.Execute(method, req, resp) })
}

func (c *cluster) status(path string) (*client.FileStatus, error) {
	resp := message("GetFileInfoResponse")
	if err := c.call("getFileInfo", message("GetFileInfoRequest", "src", path), resp); err != nil {
		return nil, err
	}
	if !has(resp, "fs") {
		return nil, fs.ErrNotExist
	}
	return part(resp, "fs").(*client.FileStatus), nil
}

func describe(name string, s *client.FileStatus) dfs.Info {
	info := dfs.Info{Name: name, Dir: s.GetFileType().String() == "IS_DIR", Modified: time.UnixMilli(int64(s.GetModificationTime())),
		BlockSize: int64(s.GetBlocksize())}
	if !info.Dir {
		info.Size = int64(s.GetLength())
	}
	return info
}

func (f *FS) Stat(name string) (dfs.Info, error) {
	c, path, name, err := f.resolve("stat", name)
	if err != nil {
		return dfs.Info{}, err
	}
	s, err := c.status(path)
	if err != nil {
		return dfs.Info{}, failure("stat", name, err)
	}
	return describe(name, s), nil
}

// listing reads a directory page by page. For a file it returns the file.
func (c *cluster) listing(path string, locations bool) (all []*client.FileStatus, err error) {
	after := []byte{}
	for {
		resp := message("GetListingResponse")
		req := message("GetListingRequest", "src", path, "startAfter", after, "needLocation", locations)
		if err := c.call("getListing", req, resp); err != nil {
			return nil, err
		}
		if !has(resp, "dirList") {
			return nil, fs.ErrNotExist
		}
		page := parts(part(resp, "dirList"), "partialListing")
		for _, entry := range page {
			all = append(all, entry.(*client.FileStatus))
		}
		if len(page) == 0 || field(part(resp, "dirList"), "remainingEntries").Uint() == 0 {
			return all, nil
		}
		after = all[len(all)-1].GetPath()
	}
}

// isFile reports whether the listed path is a file.
func isFile(all []*client.FileStatus) bool { return len(all) == 1 && len(all[0].GetPath()) == 0 }

func (f *FS) List(name string) ([]dfs.Info, error) { return list(f, name, describe) }

// list describes a directory's entries, sorted by name.
func list[D any](f *FS, name string, describe func(name string, s *client.FileStatus) D) ([]D, error) {
	c, path, name, err := f.resolve("list", name)
	if err != nil {
		return nil, err
	}
	all, err := c.listing(path, false)
	if err == nil && isFile(all) {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, failure("list", name, err)
	}
	slices.SortFunc(all, func(a, b *client.FileStatus) int { return bytes.Compare(a.GetPath(), b.GetPath()) })
	entries := make([]D, len(all))
	for i, s := range all {
		entries[i] = describe(dfs.Join(name, string(s.GetPath())), s)
	}
	return entries, nil
}

func permission(bits uint32) proto.Message { return message("FsPermission", "perm", bits) }

// ownerOnly has the settings of private directories and files.
var ownerOnly = dfs.Creation{Allowed: 0o700}

// creating is an FS with settings for new directories and files.
type creating struct {
	*FS
	settings dfs.Creation
}

// Private makes directories of mode 0700 and files of 0600; see dfs.Private.
func (f *FS) Private() dfs.FS { return creating{f, ownerOnly} }

// Creating makes directories and files with other settings; see dfs.Creating.
func (f *FS) Creating(c dfs.Creation) dfs.FS { return creating{f, c} }

func (f creating) Create(name string) (dfs.Writer, error) { return f.create(name, f.settings) }
func (f creating) Mkdir(name string) error                { return f.mkdir(name, f.settings) }
func (f creating) MkdirAll(name string) error             { return f.mkdirAll(name, f.settings) }

// allowed returns the permission bits that new entries may have: of the settings, or by the umask in the
// configuration, which is 022 by default.
func (c *cluster) allowed(settings dfs.Creation) (uint32, error) {
	if settings.Allowed != 0 {
		return settings.Allowed, nil
	}
	allowed, err := c.conf.Allowed()
	return cmp.Or(allowed, 0o755), err
}

// makeDir calls the NameNode's mkdirs, which accepts an existing directory.
func (c *cluster) makeDir(path string, parents bool, bits uint32) error {
	return c.call("mkdirs", message("MkdirsRequest", "src", path, "masked", permission(bits), "createParent", parents),
		message("MkdirsResponse"))
}

func (f *FS) MkdirAll(name string) error { return f.mkdirAll(name, dfs.Creation{}) }

func (f *FS) mkdirAll(name string, settings dfs.Creation) error {
	c, path, name, err := f.resolve("mkdir", name)
	if err != nil {
		return err
	}
	bits, err := c.allowed(settings)
	if err == nil {
		err = c.makeDir(path, true, bits)
	}
	if errors.Is(err, fs.ErrExist) { // the name is a file; an existing directory is accepted
		err = syscall.ENOTDIR
	}
	return failure("mkdir", name, err)
}

// Mkdir makes a temporary directory and renames it: of several concurrent mkdirs calls for
// one name, all would succeed.
func (f *FS) Mkdir(name string) error { return f.mkdir(name, dfs.Creation{}) }

func (f *FS) mkdir(name string, settings dfs.Creation) error {
	c, path, name, err := f.resolve("mkdir", name)
	if err != nil {
		return err
	}
	if path == "/" {
		return failure("mkdir", name, fs.ErrExist)
	}
	parent, base := path[:strings.LastIndexByte(path, '/')+1], path[strings.LastIndexByte(path, '/')+1:]
	temporary := parent + "." + base + "." + rand.Text() + ".mkdir"
	bits, err := c.allowed(settings)
	if err == nil {
		err = c.makeDir(temporary, false, bits)
	}
	if err != nil {
		return failure("mkdir", name, err)
	}
	err = c.rename(temporary, path)
	if errors.Is(err, fs.ErrNotExist) {
		// The temporary name is unique: an earlier call succeeded, or the parent is missing.
		if _, statErr := c.status(path); statErr == nil {
			return nil
		}
	}
	if err != nil {
		if _, e := c.remove(temporary, true); e != nil {
			err = errors.Join(err, e)
		}
	}
	return failure("mkdir", name, err)
}

// SyncDir does nothing: the NameNode logs every change before its response.
func (f *FS) SyncDir(string) error { return nil }

// rename calls the NameNode's rename2 without the overwrite flag, which the library always
// sets. So it fails if the target exists.
func (c *cluster) rename(from, to string) error {
	return c.call("rename2", message("Rename2Request", "src", from, "dst", to, "overwriteDest", false), message("Rename2Response"))
}

func (f *FS) RenameFile(from, to string) error { return f.rename(from, to) }
func (f *FS) RenameDir(from, to string) error  { return f.rename(from, to) }

func (f *FS) rename(from, to string) error {
	c, source, from, err := f.resolve("rename", from)
	if err != nil {
		return err
	}
	other, target, to, err := f.resolve("rename", to)
	if err != nil {
		return err
	}
	if other != c {
		return failure("rename", from, fmt.Errorf("to another file system: %w", fs.ErrInvalid), to)
	}
	return failure("rename", from, c.rename(source, target), to)
}

// remove removes a path and reports whether it existed.
func (c *cluster) remove(path string, tree bool) (existed bool, err error) {
	err = c.retry(func(conn *pooledConn, earlier retryState) error {
		resp := message("DeleteResponse")
		if err := conn.remote.Execute("delete", message("DeleteRequest", "src", path, "recursive", tree), resp); err != nil {
			return err
		}
		existed = field(resp, "result").Bool() || earlier.mayHaveApplied
		return nil
	})
	return existed, err
}

func (f *FS) Remove(name string) error {
	c, path, name, err := f.resolve("remove", name)
	if err != nil {
		return err
	}
	existed, err := c.remove(path, false)
	if err == nil && !existed {
		err = fs.ErrNotExist
	}
	return failure("remove", name, err)
}

func (f *FS) RemoveAll(name string) error {
	c, path, name, err := f.resolve("remove", name)
	if err != nil {
		return err
	}
	_, err = c.remove(path, true)
	if errors.Is(err, fs.ErrPermission) {
		// The NameNode checks permissions first, even for missing files.
		if _, e := c.status(path); errors.Is(e, fs.ErrNotExist) || errors.Is(e, syscall.ENOTDIR) {
			err = nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		err = nil
	}
	return failure("remove", name, err)
}
