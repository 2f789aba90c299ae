package hdfs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/dfs"
)

// Delegate gets delegation tokens of a user for the NameNodes of some URLs, and returns the content
// of a token file, the time at which the first of them expires, and a function that cancels them.
// The user is that of As. The content is nil if none is needed: no URL is HDFS's, or it is without
// Kerberos.
//
// Only NameNodes of the configuration get this process's login: a job could name any other.
func (f *FS) Delegate(user string, names []string) (file []byte, expires time.Time, cancel func() error, err error) {
	authorities := hdfsAuthorities(names)
	if len(authorities) == 0 {
		return nil, time.Time{}, nil, nil
	}
	conf, err := f.conf()
	if err != nil || !conf.kerberos() {
		return nil, time.Time{}, nil, err
	}
	as := f.As(user)
	defer as.Close()
	var tokens []token
	var cancels []func() error
	cancel = func() (err error) {
		for _, c := range cancels {
			err = errors.Join(err, c())
		}
		return err
	}
	served := make(map[string]bool) // NameNodes with a token: they may have several names
	for _, authority := range authorities {
		addrs, err := conf.nameNodes(authority)
		all := strings.Join(addrs, ",")
		if err != nil || served[all] || !conf.configured(addrs) {
			continue // a worker reports that it has no token
		}
		served[all] = true
		t, until, err := f.delegate(as, authority)
		if err != nil {
			return nil, time.Time{}, nil, errors.Join(fmt.Errorf("get a delegation token of hdfs://%s: %w", authority, err), cancel())
		}
		cancels = append(cancels, func() error { return f.cancelToken(authority, t) })
		tokens = append(tokens, t)
		if expires.IsZero() || until.Before(expires) {
			expires = until
		}
	}
	return writeTokens(tokens), expires, cancel, nil
}

// hdfsAuthorities returns the authorities of HDFS URLs, sorted and each once.
func hdfsAuthorities(names []string) (authorities []string) {
	for _, name := range names {
		clean, err := dfs.Clean(name)
		rest, ok := strings.CutPrefix(clean, "hdfs://")
		if err == nil && ok {
			authority, _, _ := strings.Cut(rest, "/")
			authorities = append(authorities, authority)
		}
	}
	slices.Sort(authorities)
	return slices.Compact(authorities)
}

// delegate gets a token. Only its renewer learns when it expires: this process, under its own name.
func (f *FS) delegate(as *FS, authority string) (t token, expires time.Time, err error) {
	own, err := f.cluster(authority)
	if err != nil {
		return t, expires, err
	}
	c, err := as.cluster(authority)
	if err != nil {
		return t, expires, err
	}
	if own.security.login == nil {
		return t, expires, fmt.Errorf("the login is a token file (%s), which gets no other tokens: %w", tokenVariable, ErrUnsupported)
	}
	given := message("common.GetDelegationTokenResponse")
	if err := c.call("getDelegationToken", message("common.GetDelegationTokenRequest", "renewer", own.security.login.name()), given); err != nil {
		return t, expires, err
	}
	if !has(given, "token") {
		return t, expires, errors.New("the NameNode gives none")
	}
	t = tokenOf(part(given, "token"))
	t.service = own.conf.tokenServices(authority, own.options.Addresses)[0]
	renewed := message("common.RenewDelegationTokenResponse")
	if err := own.call("renewDelegationToken", message("common.RenewDelegationTokenRequest", "token", t.message()), renewed); err != nil {
		return t, expires, errors.Join(fmt.Errorf("renew it: %w", err), f.cancelToken(authority, t))
	}
	return t, time.UnixMilli(int64(field(renewed, "newExpiryTime").Uint())), nil
}

func (f *FS) cancelToken(authority string, t token) error {
	c, err := f.cluster(authority)
	if err != nil {
		return err
	}
	return c.call("cancelDelegationToken", message("common.CancelDelegationTokenRequest", "token", t.message()), message("common.CancelDelegationTokenResponse"))
}
