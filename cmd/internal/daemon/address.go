package daemon

import (
	"flag"
	"log/slog"
	"net"
	"strconv"

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
