package identity

import (
	"crypto/tls"
	"net"
)

// Refusal is a peer that this process has not admitted, or does not admit any more.
type Refusal struct {
	From        string // address
	Certificate string // its role, name and serial number, as it says; empty: none
	Reason      error
	Suppressed  int // refusals before it that were not told

	// Connected is set if the peer had a connection, which is closed now. Otherwise it was refused during the handshake, before it
	// showed that the certificate is its own.
	Connected bool
}

// OnRefusal makes id call f for peers that it refuses, at most as often as it logs them, and for those that it disconnects. Call
// it before Server. The function must not wait. A nil Identity refuses no peer.
func (id *Identity) OnRefusal(f func(Refusal)) {
	if id != nil {
		id.told = f
	}
}

func (id *Identity) tell(s tls.ConnectionState, conn net.Conn, reason error, suppressed int, connected bool) {
	if id.told == nil {
		return
	}
	r := Refusal{From: conn.RemoteAddr().String(), Reason: reason, Suppressed: suppressed, Connected: connected}
	if len(s.PeerCertificates) > 0 {
		cert := s.PeerCertificates[0]
		r.Certificate = "serial " + serialText(cert.SerialNumber)
		if p, err := peerOf(cert); err == nil {
			r.Certificate = p.String() + ", " + r.Certificate
		}
	}
	id.told(r)
}
