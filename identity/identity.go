// Package identity says who is at the other end of a connection: certificates of
// one authority for a whole cluster, each with a role and a name, mutual TLS 1.3
// that admits roles, and the key of gossip.
//
// # A directory
//
// A daemon or client has one directory, named by -tls-dir:
//
//	ca.pem       certificate of the cluster's authority
//	cert.pem     certificate of this daemon or client
//	key.pem      its private key, readable by its user alone
//	gossip.key   32 bytes in base64, of daemons, readable by their user alone
//
// [Authority] makes such directories; mrsubmit cluster certs is its command. The
// authority's own key is in none of them.
//
// # Who somebody is
//
// A certificate's subject alternative name has one URI: quern://<role>/<name>,
// with role jobtracker, tasktracker or client. Host names play no part: a machine
// that gets another address needs no new certificate, and one that can answer
// under another's address gains nothing without a key.
//
// # Invariants
//
//	T1  Nothing is exchanged with a peer whose certificate is not of the authority,
//	    not of now, or not of an admitted role.
//	T2  Files are read again when they have changed. A broken new one leaves the old
//	    in use, and is logged.
//	T3  A private key that others can read is refused.
//
// An Identity may be used from any goroutine.
package identity

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The files of a directory.
const (
	AuthorityFile = "ca.pem"
	CertFile      = "cert.pem"
	KeyFile       = "key.pem"
	GossipFile    = "gossip.key"
)

// lookAgain is how often files are looked at for changes, at most.
const lookAgain = time.Second

var (
	// ErrNoIdentity reports a directory that is no identity, or not one to use.
	ErrNoIdentity = errors.New("no usable identity")
	// ErrNotAdmitted reports a peer that is not who may be there.
	ErrNotAdmitted = errors.New("not admitted")
)

// Identity is who this process is.
type Identity struct {
	dir  string
	self Peer
	log  *slog.Logger
	now  func() time.Time

	mu     sync.Mutex
	pair   tls.Certificate
	roots  *x509.CertPool
	looked time.Time
	stamps [3]stamp // of the files read
	failed string   // why newer files are not in use, as logged
}

// stamp tells one version of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

// Load reads a directory, which must be of a role.
func Load(dir string, role Role, log *slog.Logger) (*Identity, error) {
	id := &Identity{dir: dir, log: log, now: time.Now}
	if log == nil {
		id.log = slog.New(slog.DiscardHandler)
	}
	if err := id.read(); err != nil {
		return nil, fmt.Errorf("%w in %s: %w", ErrNoIdentity, dir, err)
	}
	if id.self.Role != role {
		return nil, fmt.Errorf("%w in %s: its certificate is of %v, a %s is wanted", ErrNoIdentity, dir, id.self, role)
	}
	return id, nil
}

// Self is the peer that others see.
func (id *Identity) Self() Peer { return id.self }

// read reads the files as they are now. The caller has mu, or the only reference.
func (id *Identity) read() error {
	stamps, err := id.stampFiles()
	if err != nil {
		return err
	}
	key := filepath.Join(id.dir, KeyFile)
	if err := private(key); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(id.dir, CertFile), key)
	if err != nil {
		return err
	}
	if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		return fmt.Errorf("%s: %w", CertFile, err)
	}
	roots, err := readAuthority(filepath.Join(id.dir, AuthorityFile))
	if err != nil {
		return err
	}
	self, err := peerOf(pair.Leaf)
	if err != nil {
		return fmt.Errorf("%s: %w", CertFile, err)
	}
	if err := verify(pair.Leaf, roots, id.now()); err != nil {
		return fmt.Errorf("%s: %w", CertFile, err)
	}
	if id.self.Role != "" && self != id.self {
		return fmt.Errorf("%s is of %v now, not of %v", CertFile, self, id.self)
	}
	id.pair, id.roots, id.self, id.stamps = pair, roots, self, stamps
	return nil
}

func (id *Identity) stampFiles() (stamps [3]stamp, err error) {
	for i, name := range []string{AuthorityFile, CertFile, KeyFile} {
		info, err := os.Stat(filepath.Join(id.dir, name))
		if err != nil {
			return stamps, err
		}
		stamps[i] = stamp{info.ModTime(), info.Size()}
	}
	return stamps, nil
}

// private refuses a file that others than its owner can read.
func private(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		return fmt.Errorf("%s can be read by others than its owner (mode %v): chmod 600 it", name, info.Mode().Perm())
	}
	return nil
}

func readAuthority(name string) (*x509.CertPool, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	roots, some := x509.NewCertPool(), false
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		roots.AddCert(cert)
		some = true
	}
	if !some {
		return nil, fmt.Errorf("%s: no certificate in it", name)
	}
	return roots, nil
}

// current is what is to be shown and believed now.
func (id *Identity) current() (*tls.Certificate, *x509.CertPool) {
	id.mu.Lock()
	defer id.mu.Unlock()
	if now := id.now(); now.Sub(id.looked) >= lookAgain {
		id.looked = now
		id.refresh()
	}
	pair := id.pair
	return &pair, id.roots
}

// refresh takes changed files up. What is wrong with them is said once.
func (id *Identity) refresh() {
	stamps, err := id.stampFiles()
	if err == nil && stamps == id.stamps {
		return
	}
	if err == nil {
		err = id.read()
	}
	if err == nil {
		id.failed = ""
		id.log.Info("new certificate", "directory", id.dir, "until", id.pair.Leaf.NotAfter)
		return
	}
	if id.failed != err.Error() {
		id.failed = err.Error()
		id.log.Error("new certificate cannot be used, the old one stays", "directory", id.dir, "error", err)
	}
}

// GossipKey reads the key of gossip.
func (id *Identity) GossipKey() ([]byte, error) {
	name := filepath.Join(id.dir, GossipFile)
	key, err := readGossipKey(name)
	if err != nil {
		return nil, fmt.Errorf("%w: key of gossip: %w", ErrNoIdentity, err)
	}
	return key, nil
}

const gossipKeySize = 32

func readGossipKey(name string) ([]byte, error) {
	if err := private(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w; it is the same for all daemons of a cluster", err)
		}
		return nil, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != gossipKeySize {
		return nil, fmt.Errorf("%s: want %d bytes in base64", name, gossipKeySize)
	}
	return key, nil
}
