package hdfs

import (
	"errors"
	"fmt"
	"os"
	"strings"

	client "github.com/colinmarc/hdfs/v2"
	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"
)

// ErrUnsupported reports a feature of HDFS that this package does not have.
var ErrUnsupported = errors.New("not supported")

// secure sets the options for a cluster with Kerberos. Tickets come from kinit's credential
// cache or from a keytab.
func secure(options *client.ClientOptions, conf Conf) error {
	protection := strings.ToLower(conf.get("dfs.data.transfer.protection"))
	for _, level := range []string{"authentication", "integrity", "privacy"} { // the last match wins
		if strings.Contains(protection, level) {
			options.DataTransferProtection = level
		}
	}
	if conf.flag("dfs.encrypt.data.transfer") {
		options.DataTransferProtection = "privacy"
	}
	if !strings.EqualFold(conf.get("hadoop.security.authentication"), "kerberos") {
		return nil
	}
	principal, _, _ := strings.Cut(conf.get("dfs.namenode.kerberos.principal"), "@")
	if principal == "" {
		return errors.New("kerberos: Hadoop's configuration has no dfs.namenode.kerberos.principal")
	}
	options.KerberosServicePrincipleName = principal
	var err error
	if options.KerberosClient, err = ticket(); err != nil {
		if os.Getenv("HADOOP_TOKEN_FILE_LOCATION") != "" {
			return fmt.Errorf("delegation tokens (HADOOP_TOKEN_FILE_LOCATION): %w; without them: %w", ErrUnsupported, err)
		}
		return err
	}
	return nil
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
