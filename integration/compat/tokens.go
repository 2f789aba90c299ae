package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

const (
	tokenFile = "HADOOP_TOKEN_FILE_LOCATION"
	proxied   = "alice" // the user that the superuser may act as
)

// proxyUsers lets the superuser act as another user.
func proxyUsers() map[string]string {
	return map[string]string{"hadoop.proxyuser.nn.hosts": "*", "hadoop.proxyuser.nn.users": proxied}
}

// tokens compares what holders of delegation tokens may do: Quern with its own tokens and Hadoop's,
// Hadoop with Quern's; each for the login's user and for another one.
type tokens struct {
	secured
	cluster *minicluster.Cluster
	server  *kdc
	site    map[string]string
	dir     string
	content []byte
	a       *answers
}

const home = "/home"

func (t tokens) compared(ctx context.Context) error {
	for _, args := range [][]string{{"-mkdir", home}, {"-chmod", "777", home}} {
		if _, err := t.cluster.Shell(ctx, args...); err != nil {
			return err
		}
	}
	theirs := filepath.Join(t.dir, "fetched")
	if _, err := t.cluster.Tool(ctx, "org.apache.hadoop.hdfs.tools.DelegationTokenFetcher", "--renewer", "nn", theirs); err != nil {
		return err
	}
	for _, level := range []string{"authentication", "integrity", "privacy"} {
		conf := clientConf(t.cluster, t.site, protected(level))
		err := t.server.withTokens(theirs, func() error {
			t.check(level+", of Hadoop: Quern reads and writes", t.ask(t.cluster, conf, home+"/theirs-"+level, t.content))
			return nil
		})
		for _, user := range []string{"", proxied} {
			if err == nil {
				err = t.issued(ctx, conf, user, level)
			}
		}
		if err != nil {
			return fmt.Errorf("delegation tokens, %s: %w", level, err)
		}
	}
	return nil
}

func (t tokens) check(what string, err error) {
	t.a.lines++
	fmt.Fprintf(os.Stderr, "  delegation token, %s: %v\n", what, err)
	if err != nil {
		t.a.differences = append(t.a.differences, fmt.Sprintf("delegation token, %s: %v", what, err))
	}
}

// issued compares with a token that Quern gets for a user. The last level does it with Hadoop too.
func (t tokens) issued(ctx context.Context, conf hdfs.Conf, user, level string) error {
	daemon := hdfs.New(hdfs.Options{Conf: conf})
	defer daemon.Close()
	file, _, cancel, err := daemon.Delegate(user, []string{t.cluster.URL() + "/x"})
	if err != nil {
		return err
	}
	name, to := filepath.Join(t.dir, level+user), home+"/"+level+user
	if err := os.WriteFile(name, file, 0o600); err != nil {
		return err
	}
	what := fmt.Sprintf("%s, of %q", level, user)
	err = t.server.withTokens(name, func() error {
		t.check(what+": Quern reads and writes", t.ask(t.cluster, conf, to, t.content))
		if level != "privacy" {
			return nil
		}
		_, err := t.cluster.Shell(ctx, "-get", to, name+"-back")
		text, err2 := os.ReadFile(name + "-back")
		if err = errors.Join(err, err2); err == nil && !bytes.Equal(text, t.content) {
			err = fmt.Errorf("it reads %d of %d bytes", len(text), len(t.content))
		}
		t.check(what+": Hadoop reads", err)
		owner, err := t.cluster.Shell(ctx, "-stat", "%u", to)
		if want := map[string]string{"": "nn"}[user] + user; err == nil && !strings.HasSuffix(strings.TrimSpace(owner), "\n"+want) {
			err = fmt.Errorf("it belongs to %s, want %s", owner, want)
		}
		t.check(what+": the owner of its file", err)
		return nil
	})
	if err = errors.Join(err, cancel()); err != nil {
		return err
	}
	err = t.server.withTokens(name, func() error {
		t.check(what+": after it was cancelled", refused(t.ask(t.cluster, conf, to+"-cancelled", t.content), "can't be found in cache"))
		return nil
	})
	_, _, _, refusal := daemon.Delegate("bob", []string{t.cluster.URL() + "/x"})
	t.check(level+", of bob", refused(refusal, "is not allowed to impersonate bob"))
	if !errors.Is(refusal, dfs.ErrActAs) {
		t.check(level+", of bob", fmt.Errorf("not a refusal of the NameNode: %w", refusal))
	}
	return err
}

// refused returns an error unless err has a text.
func refused(err error, want string) error {
	if err == nil || !strings.Contains(err.Error(), want) {
		return fmt.Errorf("%v; want %q", err, want)
	}
	return nil
}
