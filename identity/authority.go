package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"syscall"
	"time"
)

// Authority makes identities. Its directory has the authority's certificate and key, and the
// cluster's gossip key. Keep it secret: its owner can pose as any user or daemon.
type Authority struct {
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	gossip []byte
}

// Skew is the time by which certificates are valid before their creation, since clocks differ.
const (
	authorityYears = 10
	Skew           = time.Hour
)

// AuthorityKeyFile is the private key in the directory of an authority.
const AuthorityKeyFile = "ca-key.pem"

// OpenAuthority reads the authority in a directory, or makes a new one.
func OpenAuthority(dir string, now time.Time) (*Authority, error) {
	a := &Authority{dir: dir}
	_, err := os.Stat(filepath.Join(dir, AuthorityFile))
	switch {
	case err == nil:
		err = a.read()
	case errors.Is(err, fs.ErrNotExist):
		err = a.make(now)
	}
	if err != nil {
		return nil, fmt.Errorf("authority in %s: %w", dir, err)
	}
	return a, nil
}

func (a *Authority) read() error {
	keyFile := filepath.Join(a.dir, AuthorityKeyFile)
	if err := checkPrivate(keyFile); err != nil {
		return err
	}
	block, err := readPEM(filepath.Join(a.dir, AuthorityFile))
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(block); err != nil {
		return err
	}
	if block, err = readPEM(keyFile); err != nil {
		return err
	}
	if a.key, err = x509.ParseECPrivateKey(block); err != nil {
		return err
	}
	a.gossip, err = readGossipKey(filepath.Join(a.dir, GossipFile))
	return err
}

func readPEM(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not a PEM file", name)
	}
	return block.Bytes, nil
}

func (a *Authority) make(now time.Time) (err error) {
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	template, err := newTemplate(authorityName(), now, now.AddDate(authorityYears, 0, 0))
	if err != nil {
		return err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	a.gossip = make([]byte, gossipKeySize)
	if _, err := rand.Read(a.gossip); err != nil {
		return err
	}
	return a.publish()
}

// publish writes a new authority into its directory by one rename. Another process may be first: a
// then becomes its authority. On NFS a rename may fail although it was done, so the files decide.
func (a *Authority) publish() error {
	parent := filepath.Dir(a.dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(parent, ".authority-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // if it is not renamed
	err = errors.Join(
		a.writeGossip(dir),
		writeKey(filepath.Join(dir, AuthorityKeyFile), a.key),
		writeCert(filepath.Join(dir, AuthorityFile), a.cert.Raw))
	if err != nil {
		return err
	}
	_ = syscall.Rmdir(a.dir) // only an empty directory goes away; the rename shows whether there is another
	renamed := os.Rename(dir, a.dir)
	if err := a.read(); err != nil {
		return errors.Join(renamed, err)
	}
	return nil
}

// authorityName returns a new name, which errors show: it tells authorities of a user apart.
func authorityName() string {
	var random [4]byte
	rand.Read(random[:])
	if u, err := user.Current(); err == nil {
		return fmt.Sprintf("Quern authority of %s, %x", u.Username, random)
	}
	return fmt.Sprintf("Quern authority of user %d, %x", os.Geteuid(), random)
}

func newTemplate(name string, now, until time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-Skew), NotAfter: until,
	}, nil
}

// Issue makes the directory of a peer, and replaces existing files. The certificate is valid until
// the given time, or as long as the authority if it is zero.
func (a *Authority) Issue(dir string, p Peer, now, until time.Time) error {
	if err := a.issue(dir, p, now, until); err != nil {
		return fmt.Errorf("certificate of %v: %w", p, err)
	}
	return nil
}

// sign makes a key and a certificate of a peer.
func (a *Authority) sign(p Peer, now, until time.Time) (key *ecdsa.PrivateKey, der []byte, err error) {
	if err := CheckName(p.Name); err != nil {
		return nil, nil, err
	}
	if !p.Role.known() {
		return nil, nil, fmt.Errorf("role %q is unknown", p.Role)
	}
	if until.IsZero() || until.After(a.cert.NotAfter) {
		until = a.cert.NotAfter
	}
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	template, err := newTemplate(p.Name, now, until)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	template.URIs = []*url.URL{p.uri()}
	if p.Role.daemon() {
		template.DNSNames = []string{p.Role.DNSName()}
	}
	der, err = x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	return key, der, err
}

func (a *Authority) issue(dir string, p Peer, now, until time.Time) error {
	key, der, err := a.sign(p, now, until)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if p.Role.daemon() {
		if err := a.writeGossip(dir); err != nil {
			return err
		}
	}
	return errors.Join(
		writeCert(filepath.Join(dir, AuthorityFile), a.cert.Raw),
		writeKey(filepath.Join(dir, KeyFile), key),
		writeCert(filepath.Join(dir, CertFile), der))
}

func (a *Authority) writeGossip(dir string) error {
	text := base64.StdEncoding.EncodeToString(a.gossip) + "\n"
	return replaceFile(filepath.Join(dir, GossipFile), []byte(text), 0o600)
}

func writeCert(name string, der []byte) error {
	return replaceFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

func writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return replaceFile(name, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// replaceFile writes a file atomically: readers see the old file or the new one.
func replaceFile(name string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
