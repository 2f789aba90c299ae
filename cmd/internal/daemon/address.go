package daemon

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/quernmr/quern/cmd/internal/userstate"
	"github.com/quernmr/quern/identity"
)

// Security says how a daemon protects the addresses that it listens on.
type Security struct {
	TLSDir   string
	Insecure bool
	AuditLog string // file; empty: none
}

// Flags defines the flags of s for a daemon.
func (s *Security) Flags(set *flag.FlagSet) {
	s.connectionFlags(set)
	set.StringVar(&s.AuditLog, "audit-log", "", "`file` for the audit log: who changed what, and which requests were refused (default none)")
}

// connectionFlags defines the flags of s that say how processes connect.
func (s *Security) connectionFlags(set *flag.FlagSet) {
	set.StringVar(&s.TLSDir, "tls-dir", "", "`directory` with ca.pem, cert.pem, key.pem and gossip.key, made by mrsubmit cluster certs (default on loopback a certificate of the user's own authority)")
	set.BoolVar(&s.Insecure, "insecure", false, "no TLS: every process that can connect may act as any user or daemon")
}

// Automatic reports whether the daemon uses the authority of its user.
func (s Security) Automatic() bool { return s.TLSDir == "" && !s.Insecure }

// Load loads or makes the daemon's certificate for id, and loads the gossip key. It returns nil with
// -insecure, which it logs.
func (s Security) Load(role identity.Role, id string, log *slog.Logger) (*identity.Identity, []byte, error) {
	if s.Insecure {
		log.Warn("-insecure: connections are not encrypted, and every process that can connect may act as any user or daemon")
		return nil, nil, nil
	}
	if s.Automatic() {
		return loadAutomatic(identity.Peer{Role: role, Name: id}, log)
	}
	self, err := identity.Load(s.TLSDir, role, log)
	if err != nil {
		return nil, nil, Usagef("-tls-dir: %v", err)
	}
	if name := self.Peer().Name; name != id {
		return nil, nil, Usagef("-id %s: the certificate in %s is for %s", id, s.TLSDir, name)
	}
	key, err := self.GossipKey()
	if err != nil {
		return nil, nil, Usagef("-tls-dir: %v", err)
	}
	return self, key, nil
}

var errBoth = Usagef("-tls-dir and -insecure: one or the other")

func loadAutomatic(peer identity.Peer, log *slog.Logger) (*identity.Identity, []byte, error) {
	self, err := userstate.Identity(os.Getenv, peer, log)
	var key []byte
	if err == nil {
		key, err = self.GossipKey()
	}
	if err != nil {
		return nil, nil, Usagef("no automatic certificate: %v; name certificates with -tls-dir, or use no TLS with -insecure", err)
	}
	return self, key, nil
}

// Check refuses listening addresses to which other machines can connect, unless there is TLS or
// -insecure. Each address is the value of the flag with the same index.
func (s Security) Check(flags []string, addrs []string) error {
	if s.TLSDir != "" && s.Insecure {
		return errBoth
	}
	for i, listen := range addrs {
		host, port, err := net.SplitHostPort(listen)
		if err != nil {
			return Usagef("%s: %v", flags[i], err)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return Usagef("%s %s: port %q is not a number up to 65535", flags[i], listen, port)
		}
		ok, err := loopback(host)
		switch {
		case err != nil:
			return Usagef("%s: %v", flags[i], err)
		case !ok && s.Automatic():
			return Usagef("%s %s can be reached from other machines; add certificates with -tls-dir, or use no TLS with -insecure", flags[i], listen)
		}
	}
	return nil
}

// loopback reports whether only this machine can connect to the addresses of a host.
func loopback(host string) (bool, error) {
	if host == "" {
		return false, nil // all addresses
	}
	ips, err := net.LookupIP(host)
	if err != nil {
		return false, err
	}
	for _, ip := range ips {
		if !ip.IsLoopback() {
			return false, nil
		}
	}
	return true, nil
}

// Advertised returns the host:port that others dial. advertise is HOST, HOST:PORT or empty; missing
// parts come from the listening address.
func Advertised(flag, advertise, listening string) (string, error) {
	host, port, err := net.SplitHostPort(listening)
	if err != nil {
		return "", err
	}
	if advertise != "" {
		h, p, err := net.SplitHostPort(advertise)
		if err != nil {
			h, p = advertise, port
		}
		if _, err := strconv.ParseUint(p, 10, 16); err != nil || h == "" {
			return "", Usagef("%s %s: want HOST or HOST:PORT", flag, advertise)
		}
		host = h
		if p != "0" {
			port = p
		}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "", Usagef("%s: others cannot dial %s; give the address at which they reach this machine", flag, net.JoinHostPort(host, port))
	}
	return net.JoinHostPort(host, port), nil
}

// WithHint adds a remedy, which names the flag, to an error of listening. Other errors stay
// unchanged.
func WithHint(flag string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*net.OpError](err); !ok && flag != "-gossip" { // errors of the gossip library wrap no net.OpError
		return err
	}
	hint := ""
	switch text := err.Error(); {
	case strings.Contains(text, "address already in use"):
		hint = "another process has this port, for TCP or UDP; end it (ss -lntup shows it), or choose another port with " + flag
	case strings.Contains(text, "cannot assign requested address"):
		hint = "this machine has no such address; choose one of its addresses with " + flag + ", and give the address that others dial with " + advertiseFlag(flag)
	case strings.Contains(text, "permission denied"):
		hint = "ports below 1024 need root; choose another one with " + flag
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}

// advertiseFlag returns the flag that sets the advertised address for a listening flag.
func advertiseFlag(flag string) string {
	if flag == "-listen" {
		return "-advertise"
	}
	return flag + "-advertise"
}

// HostOf returns the host of HOST or HOST:PORT.
func HostOf(advertise string) string {
	if host, _, err := net.SplitHostPort(advertise); err == nil {
		return host
	}
	return advertise
}

// CheckAddresses refuses addresses that are not host:port.
func CheckAddresses(flag string, addrs []string) error {
	for _, addr := range addrs {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return Usagef("%s: %v", flag, err)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
			return Usagef("%s %s: want HOST:PORT", flag, addr)
		}
	}
	return nil
}
