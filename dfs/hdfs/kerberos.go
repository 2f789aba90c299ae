package hdfs

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"github.com/quernmr/quern/dfs/hdfs/sasl"
)

// ErrUnsupported reports a feature of HDFS that this package does not have.
var ErrUnsupported = sasl.ErrUnsupported

// security is how a cluster's connections are authenticated and protected.
type security struct {
	login   login       // nil: users are believed, or it has tokens
	tokens  *tokenLogin // nil: none
	rpc     sasl.Demand
	data    sasl.Demand // without levels: DataNodes take connections without a handshake
	encrypt bool        // DataNodes encrypt
}

// security returns what the configuration demands. Without Kerberos no connection can be
// protected: a configuration that demands it is refused.
func (c Conf) security(login func() (login, error)) (s security, err error) {
	s.encrypt = c.flag(encryptProperty)
	if s.rpc, err = sasl.ParseDemand("hadoop.rpc.protection", cmp.Or(c.get("hadoop.rpc.protection"), "authentication")); err != nil {
		return s, err
	}
	if text := c.get(dataProperty); text != "" {
		if s.data, err = sasl.ParseDemand(dataProperty, text); err != nil {
			return s, err
		}
	}
	if !c.kerberos() {
		for _, d := range []sasl.Demand{s.rpc, s.data} {
			if len(d.Levels) > 0 && d.Least() > sasl.Authentication {
				return s, fmt.Errorf("%s demands %s, which needs hadoop.security.authentication=kerberos", d.Property, d.Least())
			}
		}
		s.data.Levels = nil
		return s, nil
	}
	if file := os.Getenv(tokenVariable); file != "" {
		s.tokens = &tokenLogin{file: file}
		return s, nil
	}
	if c.get(principalProperty) == "" {
		return s, fmt.Errorf("kerberos: Hadoop's configuration has no %s", principalProperty)
	}
	s.login, err = login()
	return s, err
}

const principalProperty = "dfs.namenode.kerberos.principal"

func (c Conf) kerberos() bool {
	return strings.EqualFold(c.get("hadoop.security.authentication"), "kerberos")
}

// principalOf returns the service of the NameNode at an address, without a realm. _HOST is the host
// in the address. NameNodes of a nameservice may have principals of their own, as in their own
// configuration.
func (c Conf) principalOf(authority, addr string) (string, error) {
	value := c.get(principalProperty)
	if name, err := c.named(authority); err == nil {
		for _, id := range c.list("dfs.ha.namenodes." + name) {
			if withPort(c.get(rpcAddress+name+"."+id)) == addr {
				value = cmp.Or(c.get(principalProperty+"."+name+"."+id), value)
			}
		}
	}
	principal, _, _ := strings.Cut(value, "@")
	service, ok := strings.CutSuffix(principal, "/_HOST")
	if !ok {
		return principal, nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	if net.ParseIP(host) != nil {
		return "", fmt.Errorf("%s=%s needs the NameNode's host name, and its address is %s: write the name into %s or the URL", principalProperty, value, addr, rpcAddress+"…")
	}
	return service + "/" + strings.ToLower(host), nil
}

// kerberos logs in as the environment says: with a keytab, or with a credential cache of kinit.
func kerberos() (login, error) {
	path := cmp.Or(os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf")
	cfg, err := config.Load(path)
	if err != nil {
		return nil, fmt.Errorf("kerberos: %s: %w", path, err)
	}
	if file := os.Getenv("KRB5_CLIENT_KTNAME"); file != "" {
		return byKeytab(cfg, strings.TrimPrefix(file, "FILE:"))
	}
	cache := cmp.Or(os.Getenv("KRB5CCNAME"), fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()))
	if kind, file, ok := strings.Cut(cache, ":"); ok {
		if kind != "FILE" {
			return nil, fmt.Errorf("kerberos: KRB5CCNAME=%s: caches other than files: %w", cache, ErrUnsupported)
		}
		cache = file
	}
	return newCacheLogin(cache, func(file string) (login, error) { return byCache(cfg, file) })
}

// cacheLogin is a login by a credential cache. It reads the file again after each change, so that
// another program can renew the tickets.
type cacheLogin struct {
	file string
	load func(file string) (login, error)

	mu      sync.Mutex
	current login
	read    time.Time // the file's time when current was read
}

func newCacheLogin(file string, load func(file string) (login, error)) (*cacheLogin, error) {
	c := &cacheLogin{file: file, load: load}
	if info, err := os.Stat(file); err == nil { // before it is read: a later change has another time
		c.read = info.ModTime()
	}
	var err error
	c.current, err = load(file)
	return c, err
}

func (c *cacheLogin) name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.name()
}

func (c *cacheLogin) begin(service string) ([]byte, *sasl.GSS, error) {
	current, err := c.renew()
	if err != nil {
		return nil, nil, err
	}
	return current.begin(service)
}

// renew returns the login of the file's tickets. While the file cannot be read, as in the middle
// of a change, it returns the last one.
func (c *cacheLogin) renew() (login, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.file)
	if err != nil || info.ModTime().Equal(c.read) {
		return c.current, nil
	}
	next, err := c.load(c.file)
	if err != nil {
		return c.current, nil
	}
	if was, is := c.current.name(), next.name(); was != is {
		return nil, fmt.Errorf("kerberos: the tickets in %s are now those of %s, no longer of %s: restart this process", c.file, is, was)
	}
	c.current, c.read = next, info.ModTime()
	return next, nil
}

func byCache(cfg *config.Config, cache string) (login, error) {
	tickets, err := credentials.LoadCCache(cache)
	if err != nil {
		return nil, fmt.Errorf("kerberos: no tickets in %s (run kinit): %w", cache, err)
	}
	c, err := krb.NewFromCCache(tickets, cfg)
	if err != nil {
		return nil, fmt.Errorf("kerberos: tickets in %s: %w", cache, err)
	}
	return loginOf(c), nil
}

func loginOf(c *krb.Client) login {
	return kerberosLogin{c, c.Credentials.CName(), c.Credentials.Domain()}
}

// byKeytab logs in as KRB5_CLIENT_PRINCIPAL, or as the keytab's first principal.
func byKeytab(cfg *config.Config, file string) (login, error) {
	keys, err := keytab.Load(file)
	if err != nil {
		return nil, fmt.Errorf("kerberos: keytab %s: %w", file, err)
	}
	if len(keys.Entries) == 0 {
		return nil, fmt.Errorf("kerberos: keytab %s is empty", file)
	}
	first := keys.Entries[0].Principal
	name, realm := strings.Join(first.Components, "/"), first.Realm
	if principal := os.Getenv("KRB5_CLIENT_PRINCIPAL"); principal != "" {
		if n, r, ok := strings.Cut(principal, "@"); ok {
			name, realm = n, r
		} else {
			name = principal
		}
	}
	c := krb.NewWithKeytab(name, realm, keys, cfg, krb.DisablePAFXFAST(true))
	if err := c.Login(); err != nil {
		return nil, fmt.Errorf("kerberos: log in as %s@%s: %w", name, realm, err)
	}
	return loginOf(c), nil
}
