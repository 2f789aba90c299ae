package hdfs

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/internal/hadoopconf"
)

// Conf is Hadoop's configuration. Properties in hdfs-site.xml override properties in
// core-site.xml, unless those are final.
type Conf map[string]string

// ReadConf reads the configuration files in a directory. Each of them may be missing.
func ReadConf(dir string) (Conf, error) {
	var files hadoopconf.Files
	for _, name := range []string{"core-site.xml", "hdfs-site.xml"} {
		all, err := hadoopconf.Read(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("configuration of Hadoop: %w", err)
		}
		files.Add(name, all)
	}
	conf := make(Conf)
	for name, value := range files.Values {
		conf[name] = strings.TrimSpace(value)
	}
	return conf, nil
}

// Environment reads the configuration in HADOOP_CONF_DIR, else in HADOOP_HOME.
func Environment() (Conf, error) {
	if dir := os.Getenv("HADOOP_CONF_DIR"); dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("HADOOP_CONF_DIR: %w", err)
		}
		return ReadConf(dir)
	}
	if home := os.Getenv("HADOOP_HOME"); home != "" {
		return ReadConf(filepath.Join(home, "etc", "hadoop"))
	}
	return Conf{}, nil
}

// DefaultFS returns fs.defaultFS of Hadoop's configuration; empty: it is not set.
func DefaultFS() (string, error) {
	conf, err := Environment()
	return conf.get("fs.defaultFS"), err
}

// get returns a property's value, with variables replaced.
func (c Conf) get(name string) string {
	return hadoopconf.Expand(c[name], func(name string) (string, bool) {
		value, found := c[name]
		return value, found
	})
}

// Value returns a property's value, with variables replaced; empty: it is not set.
func (c Conf) Value(name string) string { return c.get(name) }

// NameNodes returns the addresses of the NameNodes of fs.defaultFS.
func (c Conf) NameNodes() ([]string, error) { return c.nameNodes("") }

func (c Conf) list(name string) []string {
	return strings.FieldsFunc(c.get(name), func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
}

func (c Conf) flag(name string) bool { return strings.EqualFold(c.get(name), "true") }

const defaultPort = "8020"

// errNameservice reports an authority that is not a NameNode.
var errNameservice = errors.New("neither a nameservice of Hadoop's configuration nor a host")

// nameNodes returns the NameNodes' addresses for an authority: a nameservice with one or
// several NameNodes, or a host with or without a port. If the authority is empty, it uses
// the one in fs.defaultFS.
func (c Conf) nameNodes(authority string) ([]string, error) {
	authority, err := c.named(authority)
	if err != nil {
		return nil, err
	}
	if _, _, err := net.SplitHostPort(authority); err == nil {
		return []string{authority}, nil
	}
	var addrs []string
	for _, id := range c.list("dfs.ha.namenodes." + authority) {
		addr := c.get(rpcAddress + authority + "." + id)
		if addr == "" {
			return nil, fmt.Errorf("configuration of Hadoop has no %s%s.%s", rpcAddress, authority, id)
		}
		addrs = append(addrs, addr)
	}
	if addr := c.get(rpcAddress + authority); addr != "" && len(addrs) == 0 {
		addrs = append(addrs, addr)
	}
	for i, addr := range addrs {
		addrs[i] = withPort(addr)
	}
	if len(addrs) == 0 {
		addrs = []string{net.JoinHostPort(authority, defaultPort)}
	}
	return addrs, nil
}

// named returns the authority, or the one in fs.defaultFS if it is empty.
func (c Conf) named(authority string) (string, error) {
	if authority != "" {
		return authority, nil
	}
	rest, ok := strings.CutPrefix(c.get("fs.defaultFS"), "hdfs://")
	if authority, _, _ = strings.Cut(rest, "/"); !ok || authority == "" {
		return "", errors.New("hdfs:/// needs an hdfs:// URL as fs.defaultFS in Hadoop's configuration (HADOOP_CONF_DIR)")
	}
	return authority, nil
}

const rpcAddress = "dfs.namenode.rpc-address."

// configured reports whether the configuration names NameNodes: in fs.defaultFS, or in a nameservice.
func (c Conf) configured(addrs []string) bool {
	known, _ := c.nameNodes("")
	for name := range c {
		if strings.HasPrefix(name, rpcAddress) {
			known = append(known, withPort(c.get(name)))
		}
	}
	return !slices.ContainsFunc(addrs, func(addr string) bool { return !slices.Contains(known, addr) })
}

func withPort(addr string) string {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return net.JoinHostPort(addr, defaultPort)
	}
	return addr
}

// size returns a property in bytes, which may have the suffix k, m, g or t. It returns 0 if
// the property is not set or invalid.
func (c Conf) size(name string) int64 {
	n, err := dfs.ParseSize(c.get(name))
	if err != nil {
		return 0
	}
	return n
}

// localAddr returns the address to connect from, or nil for any. It uses the first entry of
// dfs.client.local.interfaces: an address or the name of an interface.
func (c Conf) localAddr() (net.Addr, error) {
	const property = "dfs.client.local.interfaces"
	names := c.list(property)
	if len(names) == 0 {
		return nil, nil
	}
	if ip := net.ParseIP(names[0]); ip != nil {
		return &net.TCPAddr{IP: ip}, nil
	}
	face, err := net.InterfaceByName(names[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %q is neither an address nor an interface: %w", property, names[0], err)
	}
	addrs, err := face.Addrs()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", property, err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() || ok && n.IP.IsLoopback() {
			return &net.TCPAddr{IP: n.IP}, nil
		}
	}
	return nil, fmt.Errorf("%s: interface %s has no address", property, names[0])
}
