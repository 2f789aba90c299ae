package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/dfs/hdfs/sasl"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// secured compares files that Hadoop writes and Quern reads, and the other way round, on an HDFS
// with Kerberos; dir is for its files.
type secured struct{ dir string }

const (
	rpcProtection  = "hadoop.rpc.protection"
	dataProtection = "dfs.data.transfer.protection"
	encryptData    = "dfs.encrypt.data.transfer"
	aesSuite       = "dfs.encrypt.data.transfer.cipher.suites"
)

// service is how an HDFS is secured, and what Quern demands of it.
type service struct {
	name    string
	site    map[string]string
	demands []demand
	tokens  bool // delegation tokens are compared too
}

// demand are the properties that a Quern process has.
type demand struct {
	conf    map[string]string
	refused string // text of the error; empty: reads and writes succeed
	cache   bool   // log in by the credential cache instead of the keytab
}

func protected(level string) map[string]string {
	return map[string]string{rpcProtection: level, dataProtection: level}
}

var services = []service{
	{"all levels, privacy by RC4", protected("authentication,integrity,privacy"), []demand{
		{conf: protected("authentication")}, {conf: protected("integrity")}, {conf: protected("privacy")},
	}, true},
	{"privacy by AES", with(protected("privacy"), aesSuite, "AES/CTR/NoPadding"), []demand{
		{conf: map[string]string{dataProtection: "authentication"}}, {conf: protected("privacy"), cache: true},
	}, false},
	{"authentication alone", protected("authentication"), []demand{
		{conf: protected("authentication")},
		{conf: map[string]string{rpcProtection: "integrity"}, refused: "offers authentication, " + rpcProtection + " demands integrity"},
		{conf: map[string]string{rpcProtection: "privacy"}, refused: "offers authentication, " + rpcProtection + " demands privacy"},
		{conf: map[string]string{dataProtection: "integrity"}, refused: "offers authentication, " + dataProtection + " demands integrity"},
		{conf: map[string]string{dataProtection: "privacy"}, refused: "offers authentication, " + dataProtection + " demands privacy"},
	}, false},
	{"encrypting DataNodes", map[string]string{encryptData: "true", rpcProtection: "integrity"}, []demand{
		{conf: map[string]string{}}, {conf: map[string]string{encryptData: "true", rpcProtection: "integrity"}},
	}, false},
}

func with(m map[string]string, name, value string) map[string]string {
	m = maps.Clone(m)
	m[name] = value
	return m
}

// compared runs all services, one after the other.
func (s secured) compared(ctx context.Context) (a answers, err error) {
	jars, err := minicluster.Fetch(ctx)
	if err != nil {
		return a, err
	}
	a.version = hadoopVersion
	dir := filepath.Join(s.dir, "secured")
	err = inKerberos(ctx, dir, nil, nil, func(server *kdc) error {
		for i, service := range services {
			if err := s.serve(ctx, jars, server, service, filepath.Join(dir, fmt.Sprint(i)), &a); err != nil {
				return fmt.Errorf("%s: %w", service.name, err)
			}
		}
		return nil
	})
	return a, err
}

// securedSite returns the properties of a secured HDFS.
func securedSite(server *kdc, nameNode string) map[string]string {
	return map[string]string{
		"hadoop.security.authentication": "kerberos", "hadoop.security.authorization": "true",
		"dfs.block.access.token.enable": "true", "ignore.secure.ports.for.testing": "true",
		"dfs.namenode.keytab.file": server.keytab(), "dfs.datanode.keytab.file": server.keytab(),
		"dfs.namenode.kerberos.principal": nameNode + "@" + realm, "dfs.datanode.kerberos.principal": dataNode + "@" + realm,
		"dfs.web.authentication.kerberos.principal": "HTTP/localhost@" + realm, "dfs.web.authentication.kerberos.keytab": server.keytab(),
	}
}

// serve runs one secured HDFS, and adds the differences for all demands.
func (s secured) serve(ctx context.Context, jars *minicluster.Jars, server *kdc, service service, dir string, a *answers) error {
	site := securedSite(server, superuser)
	maps.Copy(site, service.site)
	maps.Copy(site, proxyUsers())
	cluster, err := minicluster.Start(ctx, minicluster.Config{Jars: jars, Dir: dir, Racks: []string{"/a"}, Replication: 1, BlockSize: 1 << 20,
		Properties: site, Kerberos: server.conf()})
	if err != nil {
		return err
	}
	defer cluster.Close()
	content := make([]byte, 5<<20+4321)
	for i := range content {
		content[i] = byte(i>>16 ^ i>>8 ^ i*7)
	}
	local := filepath.Join(dir, "content")
	if err := os.WriteFile(local, content, 0o666); err != nil {
		return err
	}
	if _, err := cluster.Shell(ctx, "-put", local, "/theirs"); err != nil {
		return err
	}
	for i, demand := range service.demands {
		began := time.Now()
		keytab := server.keytab()
		if demand.cache {
			keytab = ""
		}
		if err := os.Setenv("KRB5_CLIENT_KTNAME", keytab); err != nil {
			return err
		}
		err := s.ask(cluster, clientConf(cluster, site, demand.conf), fmt.Sprint("/ours", i), content)
		got := ""
		if err != nil {
			got = err.Error()
		}
		fmt.Fprintf(os.Stderr, "  %s, %v: %v, %.50q\n", service.name, demand.conf, time.Since(began).Round(time.Millisecond), got)
		a.lines++
		if ok := err == nil; ok != (demand.refused == "") || !strings.Contains(got, demand.refused) || errors.Is(err, sasl.ErrWeaker) == ok {
			a.differences = append(a.differences, fmt.Sprintf("%s, %v: %v; want %q", service.name, demand.conf, err, demand.refused))
		}
		if err != nil {
			continue
		}
		back := filepath.Join(dir, fmt.Sprint("back", i))
		if _, err := cluster.Shell(ctx, "-get", fmt.Sprint("/ours", i), back); err != nil {
			return err
		}
		if text, err := os.ReadFile(back); err != nil || !bytes.Equal(text, content) {
			a.differences = append(a.differences, fmt.Sprintf("%s, %v: Hadoop reads %d of %d bytes, %v", service.name, demand.conf, len(text), len(content), err))
		}
	}
	if !service.tokens {
		return nil
	}
	return tokens{s, cluster, server, site, dir, content, a}.compared(ctx)
}

// clientConf returns a configuration that has only some properties in common with the servers'.
func clientConf(cluster *minicluster.Cluster, site, own map[string]string) hdfs.Conf {
	conf := hdfs.Conf{"fs.defaultFS": cluster.URL(), "dfs.blocksize": "1m",
		"hadoop.security.authentication":  site["hadoop.security.authentication"],
		"dfs.namenode.kerberos.principal": site["dfs.namenode.kerberos.principal"]}
	maps.Copy(conf, own)
	return conf
}

// ask reads Hadoop's file and writes one for Hadoop.
func (s secured) ask(cluster *minicluster.Cluster, conf hdfs.Conf, name string, content []byte) error {
	f := hdfs.New(hdfs.Options{Conf: conf})
	defer f.Close()
	r, err := f.Open(cluster.URL() + "/theirs")
	if err != nil {
		return err
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, content) {
		return fmt.Errorf("read %d bytes, other ones than the %d that Hadoop wrote", len(got), len(content))
	}
	some := make([]byte, 70_001)
	if _, err := r.ReadAt(some, 3_000_001); err != nil || !bytes.Equal(some, content[3_000_001:][:len(some)]) {
		return fmt.Errorf("read other bytes at an offset than Hadoop wrote: %w", err)
	}
	w, err := f.Create(cluster.URL() + name)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}
