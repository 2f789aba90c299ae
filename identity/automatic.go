package identity

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ownValidity is the validity of a certificate that a process signs for itself. It is renewed after
// half of it.
const ownValidity = 7 * 24 * time.Hour

// Identity signs a certificate for this process. The key stays in memory. The certificate renews
// itself, and changed files of the authority are read again.
func (a *Authority) Identity(p Peer, log *slog.Logger) (*Identity, error) {
	id := newIdentity(a.dir, log)
	id.files, id.renews = [3]string{AuthorityFile, AuthorityKeyFile, GossipFile}, true
	id.ownPair = func() (tls.Certificate, error) {
		current := &Authority{dir: a.dir}
		if err := current.read(); err != nil {
			return tls.Certificate{}, err
		}
		now := id.now()
		key, der, err := current.sign(p, now, now.Add(ownValidity))
		if err != nil {
			return tls.Certificate{}, err
		}
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
	}
	if err := id.read(); err != nil {
		return nil, fmt.Errorf("%w for %v of the authority in %s: %w", ErrNoIdentity, p, a.dir, err)
	}
	return id, nil
}

// mustRenew reports whether this process must sign its certificate again: half of its validity is
// over, or the clock was set back. The caller holds mu.
func (id *Identity) mustRenew() bool {
	if !id.renews {
		return false
	}
	age := id.now().Sub(id.pair.Leaf.NotBefore.Add(Skew))
	return age > ownValidity/2 || age < -Skew
}

// authorities returns the names of the trusted authorities.
func (id *Identity) authorities() string {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.trusted
}

// withRemedy adds to an error of dialing how to get a certificate of the other authority.
func (id *Identity) withRemedy(err error) error {
	if !errors.Is(err, ErrOtherAuthority) {
		return err
	}
	return fmt.Errorf("%w; the owner of that authority makes a certificate with \"mrsubmit cluster certs -%s %s\": use its directory with -tls-dir", err, id.self.Role, id.self.Name)
}
