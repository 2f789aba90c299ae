package hdfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/internal/hadoopconf"
)

// Conf is Hadoop's configuration. Properties in hdfs-site.xml override properties in
// core-site.xml, unless those are final.
type Conf map[string]string

// ReadConf reads the configuration files in a directory. Each of them may be missing.
func ReadConf(dir string) (Conf, error) {
	files, err := readSites(dir)
	return confOf(files), err
}

func readSites(dir string) (files hadoopconf.Files, err error) {
	for _, name := range []string{"core-site.xml", "hdfs-site.xml"} {
		all, err := hadoopconf.Read(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return hadoopconf.Files{}, fmt.Errorf("configuration of Hadoop: %w", err)
		}
		files.Add(name, all)
	}
	return files, nil
}

func confOf(files hadoopconf.Files) Conf {
	conf := make(Conf)
	for name, value := range files.Values {
		conf[name] = strings.TrimSpace(value)
	}
	return conf
}

// Environment reads the configuration in HADOOP_CONF_DIR, else in HADOOP_HOME.
func Environment() (Conf, error) {
	conf, _, err := Overlaid(nil, nil)
	return conf, err
}

// Overlaid reads the configuration of Environment, and lays other properties over it: those of option -conf, which leave
// final ones as they are, then those that are set, as by -D. A note names each property of -conf without effect.
func Overlaid(more, set map[string]string) (conf Conf, notes []string, err error) {
	var files hadoopconf.Files
	if dir := os.Getenv("HADOOP_CONF_DIR"); dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return nil, nil, fmt.Errorf("HADOOP_CONF_DIR: %w", err)
		}
		files, err = readSites(dir)
	} else if home := os.Getenv("HADOOP_HOME"); home != "" {
		files, err = readSites(filepath.Join(home, "etc", "hadoop"))
	}
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		notes = append(notes, files.Add("-conf", []hadoopconf.Property{{Name: name, Value: more[name]}})...)
	}
	conf = confOf(files)
	for name, value := range set {
		conf[name] = strings.TrimSpace(value)
	}
	return conf, notes, nil
}

// Reads reports whether this package reads a property, or finds out by itself what the property says.
func Reads(name string) bool {
	return slices.ContainsFunc([]string{
		"fs.defaultFS", "dfs.ha.namenodes.*", "dfs.namenode.rpc-address.*", "dfs.replication", "dfs.blocksize", umaskProperty,
		trashProperty, "dfs.client.use.datanode.hostname", "dfs.client.local.interfaces", "hadoop.security.authentication",
		principalProperty, principalProperty + ".*", "hadoop.security.token.service.use_ip", "hadoop.rpc.protection", dataProperty,
		encryptProperty, "dfs.nameservices", "dfs.client.failover.proxy.provider.*",
	}, func(known string) bool {
		prefix, isPrefix := strings.CutSuffix(known, "*")
		return name == known || isPrefix && strings.HasPrefix(name, prefix)
	})
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

// Properties that the local file system obeys too.
const (
	umaskProperty = "fs.permissions.umask-mode"
	trashProperty = "fs.trash.interval"
)

// wrong reports the value of a property. Calls are not repeated because of it.
func wrong(name string, err error) error {
	return &permanentError{fmt.Errorf("configuration of Hadoop: %s: %w", name, err)}
}

// size returns a property in bytes, which may have the suffix k, m, g or t; 0: it is not set.
func (c Conf) size(name string) (int64, error) {
	text := c.get(name)
	if text == "" {
		return 0, nil
	}
	n, err := dfs.ParseSize(text)
	if err != nil {
		return 0, wrong(name, err)
	}
	return n, nil
}

// Allowed returns the permission bits that the umask leaves to new entries; 0: there is no umask.
func (c Conf) Allowed() (uint32, error) {
	umask := c.get(umaskProperty)
	if umask == "" {
		return 0, nil
	}
	allowed, err := dfs.ParseUmask(umask)
	if err != nil {
		return 0, wrong(umaskProperty, err)
	}
	return allowed, nil
}

// TrashInterval returns how long removed files stay in the trash; 0: there is none.
func (c Conf) TrashInterval() (time.Duration, error) {
	text := c.get(trashProperty)
	if text == "" {
		return 0, nil
	}
	minutes, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(minutes) {
		return 0, wrong(trashProperty, fmt.Errorf("%q: %w: want a number of minutes", text, fs.ErrInvalid))
	}
	const most = 1e8 // more than a Duration of 190 years does not fit
	return time.Duration(max(0, min(minutes, most)) * float64(time.Minute)), nil
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
