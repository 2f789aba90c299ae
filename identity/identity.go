// Package identity authenticates both ends of a connection with mutual TLS 1.3. A cluster has one
// authority, and each certificate has a role and a name. A listener or dialer admits only some
// roles. The package also reads the gossip key.
//
// # A directory
//
// A daemon or client has one directory, named by -tls-dir:
//
//	ca.pem       certificate of the cluster's authority
//	cert.pem     certificate of this daemon or client
//	key.pem      its private key, which only its user may read
//	gossip.key   one or two keys of 32 bytes in base64, only for daemons; only their user may
//	             read it. The first one encrypts
//	denied       deny list, may be missing, see [DeniedFile]
//
// [Authority] makes such directories for mrsubmit cluster certs. They do not have the authority's
// own key.
//
// # In memory
//
// A process that can read the authority's own directory needs no other: [Authority.Identity] signs
// a certificate that only this process has, and renews it.
//
// # Roles and names
//
// A certificate's subject alternative name has one URI, quern://<role>/<name>, with role
// jobtracker, tasktracker, client or metrics. Host names do not matter: a machine with a new address needs
// no new certificate, and the address of another machine is useless without its key. All daemons of a
// role have the same DNS name, jobtracker.quern or tasktracker.quern: programs such as Prometheus can
// check it, and so do not send requests to a peer with another role.
//
// # Invariants
//
// T1  Nothing is exchanged with a peer if its certificate is from another authority,
//
//	    expired or not yet valid, or has a role that is not admitted.
//		T2  Changed files are read again. If they are broken, the old ones stay in use,
//		    and the error is logged. A start waits a second for the key of a new certificate.
//		T3  A private key that other users can read is refused.
//		T4  T1 holds while a connection lives: it ends within 5 s after its peer's certificate
//		    has expired, is in the deny list, or has no authority any more. It also ends at
//		    a maximum age.
//
// All goroutines may use an Identity.
package identity

import (
	"bytes"
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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quernmr/quern/sparselog"
)

// The files of a directory.
const (
	AuthorityFile = "ca.pem"
	CertFile      = "cert.pem"
	KeyFile       = "key.pem"
	GossipFile    = "gossip.key"
)

// checkPeriod is the minimum time between checks of the files for changes.
const checkPeriod = time.Second

var (
	// ErrNoIdentity reports a directory without a usable identity.
	ErrNoIdentity = errors.New("no usable identity")
	// ErrNotAdmitted reports a peer without a valid certificate of an admitted role.
	ErrNotAdmitted = errors.New("not admitted")
	// ErrOtherAuthority reports a peer with a certificate of an authority that is not trusted. It is an
	// ErrNotAdmitted.
	ErrOtherAuthority = fmt.Errorf("%w: the certificate is from another authority", ErrNotAdmitted)
)

// Identity has the certificate and key of this process.
type Identity struct {
	dir     string
	files   [3]string // names in dir, read again if one has changed
	ownPair func() (tls.Certificate, error)
	renews  bool // ownPair signs a new certificate
	self    Peer
	log     *slog.Logger
	refused sparselog.Limit // lines about peers that are not admitted
	told    func(Refusal)   // nil: nothing is told
	now     func() time.Time

	mu          sync.Mutex
	pair        tls.Certificate
	roots       *x509.CertPool
	trusted     string // names of the authorities in roots
	checked     time.Time
	stamps      [3]stamp // of the files, when they were read
	loggedError string   // last logged error of reading changed files

	denied       denyList
	trustChanged time.Time // last change of the authorities or of denied
	living       living
}

// stamp shows whether a file has changed.
type stamp struct {
	modified time.Time
	size     int64
}

// Times of Load while the certificate and its key are being replaced, one file after the other.
const (
	replaceWait  = time.Second
	replacePause = 50 * time.Millisecond
)

// errOtherKey reports a certificate that is not of the key beside it.
var errOtherKey = fmt.Errorf("%s is of another key than %s", CertFile, KeyFile)

// Load reads a directory. Its certificate must have this role.
func Load(dir string, role Role, log *slog.Logger) (*Identity, error) {
	id := newIdentity(dir, log)
	err := id.read()
	for until := time.Now().Add(replaceWait); errors.Is(err, errOtherKey) && time.Now().Before(until); err = id.read() {
		time.Sleep(replacePause) // both are being replaced
	}
	if err != nil {
		return nil, fmt.Errorf("%w in %s: %w", ErrNoIdentity, dir, err)
	}
	if id.self.Role != role {
		return nil, fmt.Errorf("%w in %s: its certificate is of %v, want a %s", ErrNoIdentity, dir, id.self, role)
	}
	return id, nil
}

func newIdentity(dir string, log *slog.Logger) *Identity {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	id := &Identity{dir: dir, files: [3]string{AuthorityFile, CertFile, KeyFile}, log: log, now: time.Now}
	id.ownPair = id.readPair
	return id
}

// Peer returns the role and name of this process, as others see it.
func (id *Identity) Peer() Peer { return id.self }

// read reads the files. The caller holds mu, or has the only reference.
func (id *Identity) read() error {
	stamps, err := id.stampFiles()
	if err != nil {
		return err
	}
	pair, err := id.ownPair()
	if err != nil {
		return err
	}
	if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		return fmt.Errorf("%s: %w", CertFile, err)
	}
	roots, trusted, err := readAuthority(filepath.Join(id.dir, AuthorityFile))
	if err != nil {
		return err
	}
	self, err := peerOf(pair.Leaf)
	if err != nil {
		return fmt.Errorf("%s: %w", CertFile, err)
	}
	if err := id.firstDenied(); err != nil {
		return err
	}
	if err := verify(pair.Leaf, roots, id.now()); err != nil {
		return fmt.Errorf("%s: %w", CertFile, err)
	}
	if id.self.Role != "" && self != id.self {
		return fmt.Errorf("%s is of %v now, not of %v", CertFile, self, id.self)
	}
	id.pair, id.roots, id.trusted, id.self, id.stamps = pair, roots, trusted, self, stamps
	return nil
}

// readPair reads the certificate and its key.
func (id *Identity) readPair() (tls.Certificate, error) {
	key := filepath.Join(id.dir, KeyFile)
	if err := checkPrivate(key); err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(id.dir, CertFile), key)
	if err != nil && strings.Contains(err.Error(), "does not match public key") { // package tls has no value for it
		return pair, errOtherKey
	}
	return pair, err
}

func (id *Identity) stampFiles() (stamps [3]stamp, err error) {
	for i, name := range id.files {
		info, err := os.Stat(filepath.Join(id.dir, name))
		if err != nil {
			return stamps, err
		}
		stamps[i] = stamp{info.ModTime(), info.Size()}
	}
	return stamps, nil
}

// checkPrivate fails if users other than its owner can read a file.
func checkPrivate(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		return fmt.Errorf("users other than its owner can read %s (mode %v): chmod 600 it", name, info.Mode().Perm())
	}
	return nil
}

// readAuthority returns the authorities in a file, and their names.
func readAuthority(name string) (roots *x509.CertPool, names string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, "", err
	}
	roots = x509.NewCertPool()
	var found []string
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
		roots.AddCert(cert)
		found = append(found, strconv.Quote(cert.Subject.CommonName))
	}
	if len(found) == 0 {
		return nil, "", fmt.Errorf("%s: no certificate in it", name)
	}
	if bytes.Contains(text, []byte("-----BEGIN")) {
		return nil, "", fmt.Errorf("%s: certificate %d in it is not complete", name, len(found)+1)
	}
	return roots, strings.Join(found, " or "), nil
}

// current returns the certificate to present and the authority to trust.
func (id *Identity) current() (*tls.Certificate, *x509.CertPool) {
	id.mu.Lock()
	defer id.mu.Unlock()
	if now := id.now(); now.Sub(id.checked) >= checkPeriod {
		id.checked = now
		id.refresh()
		id.refreshDenied()
	}
	pair := id.pair
	return &pair, id.roots
}

// refresh reads the files again if they have changed, and renews a certificate in time. It logs the
// same error only once.
func (id *Identity) refresh() {
	stamps, err := id.stampFiles()
	if err == nil && stamps == id.stamps && !id.mustRenew() {
		return
	}
	if err == nil {
		err = id.read()
	}
	if err == nil {
		id.loggedError, id.trustChanged = "", time.Now()
		id.log.Info("new certificate", "directory", id.dir, "until", id.pair.Leaf.NotAfter)
		return
	}
	if id.loggedError != err.Error() {
		id.loggedError = err.Error()
		id.log.Error("new certificate cannot be used, the old one stays", "directory", id.dir, "error", err)
	}
}

// GossipKey reads the gossip key that encrypts.
func (id *Identity) GossipKey() ([]byte, error) {
	keys, err := id.GossipKeys()
	if err != nil {
		return nil, err
	}
	return keys[0], nil
}

// GossipKeys reads the gossip keys. The first one encrypts, all of them decrypt. For a nil Identity
// there are none.
func (id *Identity) GossipKeys() ([][]byte, error) {
	if id == nil {
		return nil, nil
	}
	keys, err := readGossipKeys(filepath.Join(id.dir, GossipFile))
	if err != nil {
		return nil, fmt.Errorf("%w: gossip key: %w", ErrNoIdentity, err)
	}
	return keys, nil
}

const (
	gossipKeySize = 32
	maxGossipKeys = 2 // an old one and its successor
)

// readGossipKey returns the first key of a file.
func readGossipKey(name string) ([]byte, error) {
	keys, err := readGossipKeys(name)
	if err != nil {
		return nil, err
	}
	return keys[0], nil
}

func readGossipKeys(name string) (keys [][]byte, err error) {
	if err := checkPrivate(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: copy it from another daemon, all of a cluster have the same", err)
		}
		return nil, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for line := range strings.FieldsSeq(string(text)) {
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != gossipKeySize {
			return nil, fmt.Errorf("%s: want %d bytes in base64 in each line", name, gossipKeySize)
		}
		if slices.ContainsFunc(keys, func(other []byte) bool { return bytes.Equal(other, key) }) {
			return nil, fmt.Errorf("%s: the same key twice", name)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 || len(keys) > maxGossipKeys {
		return nil, fmt.Errorf("%s: %d keys, want 1 to %d, each in its own line", name, len(keys), maxGossipKeys)
	}
	return keys, nil
}
