package sasl

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/etype"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
)

// GSS wraps the messages of a Kerberos context in tokens (RFC 4121, section 4.2.6.2):
//
//	2 bytes  05 04
//	1 byte   flags
//	1 byte   FF
//	2 bytes  EC: length of the checksum, or of the padding of an encrypted message
//	2 bytes  RRC: what follows is rotated to the right by so many bytes
//	8 bytes  number of the token
//	         message and checksum; or message, padding and header, encrypted
type GSS struct {
	key            []byte
	etype          etype.EType
	acceptor       bool // the server's side
	sent, received uint64
}

var errToken = errors.New("a message was changed on the way, or is out of order")

const (
	gssHeader    = 16
	fromAcceptor = 1 << 0
	isSealed     = 1 << 1
	hasSubkey    = 1 << 2
)

// NewGSS returns one side of a context with the client's subkey. Both sides begin with the
// sequence number in the client's authenticator.
func NewGSS(subkey types.EncryptionKey, sequence uint64, acceptor bool) (*GSS, error) {
	switch subkey.KeyType {
	case etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.AES256_CTS_HMAC_SHA384_192:
	default:
		return nil, fmt.Errorf("keys of Kerberos type %d, which is not AES: %w", subkey.KeyType, ErrUnsupported)
	}
	e, err := crypto.GetEtype(subkey.KeyType)
	return &GSS{key: subkey.KeyValue, etype: e, acceptor: acceptor, sent: sequence, received: sequence}, err
}

// usage returns the number of the key that seals what a side sends.
func usage(acceptor bool) uint32 {
	if acceptor {
		return keyusage.GSSAPI_ACCEPTOR_SEAL
	}
	return keyusage.GSSAPI_INITIATOR_SEAL
}

// Wrap returns a message's token: encrypted at Privacy, else signed.
func (g *GSS) Wrap(message []byte, level Level) ([]byte, error) {
	header := make([]byte, gssHeader)
	copy(header, []byte{5, 4, 0, 0xff})
	if g.acceptor {
		header[2] |= fromAcceptor
	}
	if level == Privacy {
		header[2] |= isSealed
	}
	binary.BigEndian.PutUint64(header[8:], g.sent)
	g.sent++
	plain := append(bytes.Clone(message), header...)
	if level == Privacy {
		_, sealed, err := g.etype.EncryptMessage(g.key, plain, usage(g.acceptor))
		return append(header, sealed...), err
	}
	sum, err := g.etype.GetChecksumHash(g.key, plain, usage(g.acceptor))
	binary.BigEndian.PutUint16(header[4:], uint16(len(sum)))
	return append(append(header, message...), sum...), err
}

// Unwrap returns the message in the peer's next token. It refuses one without the level's
// protection.
func (g *GSS) Unwrap(token []byte, level Level) ([]byte, error) {
	if len(token) < gssHeader || !bytes.Equal(token[:2], []byte{5, 4}) || token[3] != 0xff {
		return nil, errToken
	}
	flags, body := token[2], token[gssHeader:]
	sealed := flags&isSealed != 0
	if flags&fromAcceptor != 0 == g.acceptor || flags&hasSubkey != 0 || level == Privacy && !sealed ||
		binary.BigEndian.Uint64(token[8:]) != g.received {
		return nil, errToken
	}
	extra := int(binary.BigEndian.Uint16(token[4:]))
	if rotated := int(binary.BigEndian.Uint16(token[6:])); rotated > 0 && len(body) > 0 {
		rotated %= len(body)
		body = append(bytes.Clone(body[rotated:]), body[:rotated]...)
	}
	header := bytes.Clone(token[:gssHeader])
	copy(header[6:], []byte{0, 0}) // the rotation is not signed
	var message []byte
	if sealed {
		if len(body) < g.etype.GetConfounderByteSize()+g.etype.GetHMACBitLength()/8 {
			return nil, errToken
		}
		plain, err := g.etype.DecryptMessage(g.key, body, usage(!g.acceptor))
		end := len(plain) - gssHeader - extra
		if err != nil || end < 0 || !bytes.Equal(plain[end+extra:], header) {
			return nil, errors.Join(errToken, err)
		}
		message = plain[:end]
	} else {
		end := len(body) - extra
		copy(header[4:], []byte{0, 0}) // nor is the checksum's length
		if end < 0 || !g.etype.VerifyChecksum(g.key, append(bytes.Clone(body[:end]), header...), body[end:], usage(!g.acceptor)) {
			return nil, errToken
		}
		message = body[:end]
	}
	g.received++
	return message, nil
}
