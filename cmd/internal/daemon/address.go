package daemon

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"github.com/quernmr/quern/identity"
)

// Security is how a daemon protects what it listens on.
type Security struct {
	TLSDir   string
	Insecure bool
}

// Flags defines the flags of s.
func (s *Security) Flags(set *flag.FlagSet) {
	set.StringVar(&s.TLSDir, "tls-dir", "", "`directory` with ca.pem, cert.pem, key.pem and gossip.key, made by mrsubmit cluster certs: all connections are mutual TLS")
	set.BoolVar(&s.Insecure, "insecure", false, "listen where other machines can connect, unprotected")
}

// Load reads who the daemon is; nil without -tls-dir. Its -id must be the name in
// its certificate.
func (s Security) Load(role identity.Role, id string, log *slog.Logger) (*identity.Identity, []byte, error) {
	if s.TLSDir == "" {
		return nil, nil, nil
	}
	who, err := identity.Load(s.TLSDir, role, log)
	if err != nil {
		return nil, nil, Wrong("-tls-dir: %v", err)
	}
	if name := who.Self().Name; name != id {
		return nil, nil, Wrong("-id %s: the certificate in %s is of %s", id, s.TLSDir, name)
	}
	key, err := who.GossipKey()
	if err != nil {
		return nil, nil, Wrong("-tls-dir: %v", err)
	}
	return who, key, nil
}

// Check refuses to listen where others than this machine could connect, unless
// that is protected, or the operator has said that it is wanted. Listens are by flag.
func (s Security) Check(flags []string, listens []string) error {
	if s.TLSDir != "" && s.Insecure {
		return Wrong("-tls-dir and -insecure: one or the other")
	}
	for i, listen := range listens {
		host, port, err := net.SplitHostPort(listen)
		if err != nil {
			return Wrong("%s: %v", flags[i], err)
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return Wrong("%s %s: port %q is no number up to 65535", flags[i], listen, port)
		}
		ok, err := loopback(host)
		switch {
		case err != nil:
			return Wrong("%s: %v", flags[i], err)
		case !ok && !s.Insecure && s.TLSDir == "":
			return Wrong("%s %s can be reached from other machines, by anybody and unencrypted; name certificates by -tls-dir or, where that is wanted, add -insecure", flags[i], listen)
		}
	}
	return nil
}

// loopback says whether a host to listen on is this machine's own alone.
func loopback(host string) (bool, error) {
	if host == "" {
		return false, nil // every address
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

// Advertised is the host:port that others dial: of advertise, HOST or HOST:PORT,
// what it says, and of the address that is listened on the rest.
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
			return "", Wrong("%s %s: want HOST or HOST:PORT", flag, advertise)
		}
		host = h
		if p != "0" {
			port = p
		}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "", Wrong("%s: others cannot dial %s; say under which address they reach this machine", flag, net.JoinHostPort(host, port))
	}
	return net.JoinHostPort(host, port), nil
}

// Bound adds to an error to listen what may be in the way, and the flag that names the
// address. Others it leaves as they are; errors of gossip's library are texts.
func Bound(flag string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*net.OpError](err); !ok && flag != "-gossip" { // the gossip library wraps no errors
		return err
	}
	hint := ""
	switch text := err.Error(); {
	case strings.Contains(text, "address already in use"):
		hint = "another process has this port, for TCP or for UDP; end it (ss -lntup names it), or choose another port with " + flag
	case strings.Contains(text, "cannot assign requested address"):
		hint = "this machine has no such address; choose one that it has with " + flag + ", and name by " + advertise(flag) + " what others are to dial"
	case strings.Contains(text, "permission denied"):
		hint = "ports below 1024 are for root; choose another one with " + flag
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}

// advertise is the flag that names what others dial for an address that is listened on.
func advertise(flag string) string {
	if flag == "-listen" {
		return "-advertise"
	}
	return flag + "-advertise"
}

// HostOf is the host of HOST or HOST:PORT.
func HostOf(advertise string) string {
	if host, _, err := net.SplitHostPort(advertise); err == nil {
		return host
	}
	return advertise
}

// CheckAddresses refuses what is no host:port.
func CheckAddresses(flag string, addrs []string) error {
	for _, addr := range addrs {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return Wrong("%s: %v", flag, err)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
			return Wrong("%s %s: want HOST:PORT", flag, addr)
		}
	}
	return nil
}
