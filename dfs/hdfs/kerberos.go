package hdfs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

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
	login     login // nil: users are believed
	principal string
	rpc       sasl.Demand
	data      sasl.Demand // without levels: DataNodes take connections without a handshake
	encrypt   bool        // DataNodes encrypt
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
	if !strings.EqualFold(c.get("hadoop.security.authentication"), "kerberos") {
		for _, d := range []sasl.Demand{s.rpc, s.data} {
			if len(d.Levels) > 0 && d.Least() > sasl.Authentication {
				return s, fmt.Errorf("%s demands %s, which needs hadoop.security.authentication=kerberos", d.Property, d.Least())
			}
		}
		s.data.Levels = nil
		return s, nil
	}
	s.principal, _, _ = strings.Cut(c.get("dfs.namenode.kerberos.principal"), "@")
	if s.principal == "" {
		return s, errors.New("kerberos: Hadoop's configuration has no dfs.namenode.kerberos.principal")
	}
	if s.login, err = login(); err != nil && os.Getenv("HADOOP_TOKEN_FILE_LOCATION") != "" {
		err = fmt.Errorf("delegation tokens (HADOOP_TOKEN_FILE_LOCATION): %w; without them: %w", ErrUnsupported, err)
	}
	return s, err
}

// kerberos logs in as the environment says: with a credential cache of kinit, or with a keytab.
func kerberos() (login, error) {
	k, err := ticket()
	if err != nil {
		return nil, err
	}
	return kerberosLogin{k, k.Credentials.CName(), k.Credentials.Domain()}, nil
}

func ticket() (*krb.Client, error) {
	path := os.Getenv("KRB5_CONFIG")
	if path == "" {
		path = "/etc/krb5.conf"
	}
	cfg, err := config.Load(path)
	if err != nil {
		return nil, fmt.Errorf("kerberos: %s: %w", path, err)
	}
	if file := os.Getenv("KRB5_CLIENT_KTNAME"); file != "" {
		return byKeytab(cfg, strings.TrimPrefix(file, "FILE:"))
	}
	cache := os.Getenv("KRB5CCNAME")
	if cache == "" {
		cache = fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())
	}
	if kind, file, ok := strings.Cut(cache, ":"); ok {
		if kind != "FILE" {
			return nil, fmt.Errorf("kerberos: KRB5CCNAME=%s: caches other than files: %w", cache, ErrUnsupported)
		}
		cache = file
	}
	tickets, err := credentials.LoadCCache(cache)
	if err != nil {
		return nil, fmt.Errorf("kerberos: no tickets in %s (run kinit): %w", cache, err)
	}
	c, err := krb.NewFromCCache(tickets, cfg)
	if err != nil {
		return nil, fmt.Errorf("kerberos: tickets in %s: %w", cache, err)
	}
	return c, nil
}

// byKeytab logs in as KRB5_CLIENT_PRINCIPAL, or as the keytab's first principal.
func byKeytab(cfg *config.Config, file string) (*krb.Client, error) {
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
	return c, nil
}
