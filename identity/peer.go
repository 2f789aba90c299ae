package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Role is the kind of a peer.
type Role string

// The roles.
const (
	JobTracker  Role = "jobtracker"
	TaskTracker Role = "tasktracker"
	Client      Role = "client"
	Metrics     Role = "metrics" // reads metrics, and nothing else
)

func (r Role) known() bool { return r.daemon() || r == Client || r == Metrics }

// daemon reports whether a role is one of daemons.
func (r Role) daemon() bool { return r == JobTracker || r == TaskTracker }

// DNSName is a name in the certificates of all daemons of a role, for programs that check one.
func (r Role) DNSName() string { return string(r) + ".quern" }

// Peer is one end of a connection.
type Peer struct {
	Role Role
	Name string // id of a daemon, or user of a client
}

func (p Peer) String() string { return string(p.Role) + " " + p.Name }

const scheme = "quern"

func (p Peer) uri() *url.URL {
	return &url.URL{Scheme: scheme, Host: string(p.Role), Path: "/" + p.Name}
}

// peerOf returns the role and name in a certificate.
func peerOf(cert *x509.Certificate) (Peer, error) {
	var found []Peer
	for _, u := range cert.URIs {
		if u.Scheme == scheme {
			found = append(found, Peer{Role: Role(u.Host), Name: strings.TrimPrefix(u.Path, "/")})
		}
	}
	if len(found) != 1 || !found[0].Role.known() || CheckName(found[0].Name) != nil {
		return Peer{}, fmt.Errorf("%w: the certificate of %q has no role and name: want one URI such as %s://client/NAME", ErrNotAdmitted, cert.Subject.CommonName, scheme)
	}
	return found[0], nil
}

// maxName is the maximum length of a name. Names appear in paths and logs.
const maxName = 64

// CheckName fails if a name has other characters than letters, digits and . _ - @, or is too long.
func CheckName(name string) error {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-@", r)
	}
	if strings.Trim(name, ".") == "" || len(name) > maxName || strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) >= 0 {
		return fmt.Errorf("name %q: want up to %d letters, digits, or . _ - @", name, maxName)
	}
	return nil
}

// verify checks a certificate against the authority. Every certificate allows both uses, client and
// server, since daemons dial and listen. So verify checks only one use.
func verify(cert *x509.Certificate, roots *x509.CertPool, now time.Time) error {
	_, err := cert.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}

// PeerOf returns the peer of a connection. ok is false without a certificate of this package.
func PeerOf(state *tls.ConnectionState) (p Peer, ok bool) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return Peer{}, false
	}
	p, err := peerOf(state.PeerCertificates[0])
	return p, err == nil
}

// Server returns the TLS configuration to listen for peers with these roles. For a nil Identity it
// is nil: no TLS.
func (id *Identity) Server(admitted ...Role) *tls.Config {
	if id == nil {
		return nil
	}
	c := id.config(admitted)
	c.ClientAuth = tls.RequireAnyClientCert // VerifyConnection checks the certificate against the current authority
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, _ := id.current()
		return pair, nil
	}
	c = id.claiming(c, admitted)
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		own := c.Clone() // which knows the address
		own.VerifyConnection = func(s tls.ConnectionState) error { return id.admit(s, admitted, hello.Conn) }
		return own, nil
	}
	return c
}

// Dialer returns the TLS configuration to dial peers with these roles. For a nil Identity it is
// nil: no TLS.
func (id *Identity) Dialer(admitted ...Role) *tls.Config {
	if id == nil {
		return nil
	}
	c := id.config(admitted)
	c.InsecureSkipVerify = true // skip host names; VerifyConnection checks authority, time and role
	c.VerifyConnection = func(s tls.ConnectionState) error { return id.withRemedy(id.admit(s, admitted, nil)) }
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, _ := id.current()
		return pair, nil
	}
	return id.claiming(c, admitted)
}

func (id *Identity) config(admitted []Role) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// A resumed session would skip the check of the certificate.
		SessionTicketsDisabled: true,
	}
}

// admit checks the peer of a connection, and logs a refusal unless there are many. The connection is nil if this process dialed.
func (id *Identity) admit(s tls.ConnectionState, admitted []Role, accepted net.Conn) error {
	err := id.checkPeer(s, admitted)
	if err == nil {
		return nil
	}
	suppressed, ok := id.refused.Admit(time.Now())
	if !ok {
		return err
	}
	args := []any{"error", err}
	if accepted != nil {
		args = append(args, "addr", accepted.RemoteAddr())
		id.tell(s, accepted, err, suppressed, false)
	}
	if suppressed > 0 {
		args = append(args, "suppressed", suppressed)
	}
	id.log.Warn("a peer is not admitted", args...)
	return err
}

func (id *Identity) checkPeer(s tls.ConnectionState, admitted []Role) error {
	if len(s.PeerCertificates) == 0 {
		return fmt.Errorf("%w: no certificate", ErrNotAdmitted)
	}
	cert := s.PeerCertificates[0]
	_, roots := id.current()
	err := verify(cert, roots, id.now())
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return fmt.Errorf("%w: that of %q is from %q, not from %s in %s: %w", ErrOtherAuthority, cert.Subject.CommonName, cert.Issuer.CommonName, id.authorities(), id.dir, err)
	}
	if err != nil {
		return fmt.Errorf("%w: the certificate of %q: %w", ErrNotAdmitted, cert.Subject.CommonName, err)
	}
	p, err := peerOf(cert)
	if err != nil {
		return err
	}
	if !slices.Contains(admitted, p.Role) {
		return fmt.Errorf("%w: %v, want %v", ErrNotAdmitted, p, admitted)
	}
	return id.denies(p, cert.SerialNumber)
}
