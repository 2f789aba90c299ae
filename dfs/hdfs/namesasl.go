package hdfs

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"time"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quernmr/quern/dfs/hdfs/sasl"
)

// nameSASL is a connection to a NameNode after its handshake, with Kerberos or a delegation token. It wraps the library's
// bytes in messages of RpcSasl, in both directions. The library believes that it connects
// without authentication: its own handshake believes what the server says before anything is
// signed, and its requests are never wrapped.
type nameSASL struct {
	net.Conn
	in      *bufio.Reader
	sealer  sealer // nil: what follows the handshake is not sealed
	level   sasl.Level
	room    int    // bytes of a message that the server takes
	started bool   // the library has written its header, which the handshake replaces
	ready   []byte // unwrapped and not yet read
}

// Values of RpcSasl's state.
const (
	saslSuccess = iota
	saslNegotiate
	saslInitiate
	saslChallenge
	saslResponse
	saslWrap
)

const (
	saslCallID   = -33
	gssOverhead  = 128       // bytes that a token adds to a message, at most
	gssMaxBuffer = 1<<24 - 1 // what we accept, in the three bytes of RFC 4752
)

var (
	saslHeader = []byte{'h', 'r', 'p', 'c', 9, 0, 0xdf}
	errNoLogin = errors.New("the NameNode does not take Kerberos, which hadoop.security.authentication demands")
)

// secureName does the handshake on a new connection to a NameNode.
func (c *cluster) secureName(raw net.Conn, addr string) (net.Conn, error) {
	if c.security.login == nil && c.security.tokens == nil {
		return raw, nil
	}
	if err := raw.SetDeadline(time.Now().Add(c.fs.options.Timeout)); err != nil {
		return nil, err
	}
	s := &nameSASL{Conn: raw, in: bufio.NewReader(raw)}
	if err := s.handshake(c, addr); err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	return s, raw.SetDeadline(time.Time{})
}

// namedAuths are the kinds of logins that a NameNode offers.
type namedAuths map[string]proto.Message

func (s *nameSASL) handshake(c *cluster, addr string) error {
	if _, err := s.Conn.Write(saslHeader); err != nil {
		return err
	}
	if err := s.send(saslNegotiate, nil); err != nil {
		return err
	}
	answer, err := s.receive(saslNegotiate)
	if err != nil {
		return err
	}
	offer := make(namedAuths)
	for _, auth := range parts(answer, "auths") {
		offer[field(auth, "method").String()] = auth
	}
	if c.security.tokens != nil {
		t, err := c.token()
		if err != nil {
			return err
		}
		return s.byToken(offer, t, rand.Text(), c.security.rpc)
	}
	service, err := c.conf.principalOf(c.authority, addr)
	if err != nil {
		return err
	}
	return s.byKerberos(offer, c.security.login, service, c.security.rpc)
}

func (s *nameSASL) byKerberos(offer namedAuths, login login, service string, demand sasl.Demand) error {
	kerberos := offer["KERBEROS"]
	if kerberos == nil {
		return errNoLogin
	}
	token, gss, err := login.begin(service)
	if err != nil {
		return err
	}
	if err := s.send(saslInitiate, token, kerberos); err != nil {
		return err
	}
	challenge, err := s.receive(saslChallenge)
	if err != nil {
		return err
	}
	reply, err := s.choose(gss, demand, field(challenge, "token").Bytes())
	if err != nil {
		return err
	}
	if err := s.send(saslResponse, reply); err != nil {
		return err
	}
	_, err = s.receive(saslSuccess)
	return err
}

// choose reads which levels the server offers, which it has signed, and returns the signed
// choice. Both messages have a byte with a bit for each level, and three bytes with the length
// of the longest message that the sender takes.
func (s *nameSASL) choose(gss *sasl.GSS, demand sasl.Demand, challenge []byte) ([]byte, error) {
	offer, err := gss.Unwrap(challenge, sasl.Integrity)
	if err != nil || len(offer) < 4 {
		return nil, errors.Join(errMalformed, err)
	}
	var offered []sasl.Level
	for l := sasl.Authentication; l <= sasl.Privacy; l++ {
		if offer[0]&(1<<l) != 0 {
			offered = append(offered, l)
		}
	}
	if s.level, err = demand.Choose(offered); err != nil {
		return nil, err
	}
	choice := uint32(1) << s.level << 24
	if s.level > sasl.Authentication {
		choice |= gssMaxBuffer
		s.sealer = gss
	}
	if s.room = int(binary.BigEndian.Uint32(offer)&gssMaxBuffer) - gssOverhead; s.room < gssOverhead && s.sealer != nil {
		return nil, errMalformed
	}
	return gss.Wrap(binary.BigEndian.AppendUint32(nil, choice), sasl.Integrity)
}

func (s *nameSASL) send(state protoreflect.EnumNumber, token []byte, auths ...proto.Message) error {
	body := message("common.RpcSasl", "state", state, "auths", auths)
	if token != nil {
		body = message("common.RpcSasl", "state", state, "token", token, "auths", auths)
	}
	header := message("common.RpcRequestHeader", "rpcKind", protoreflect.EnumNumber(2), "rpcOp", protoreflect.EnumNumber(0),
		"callId", int32(saslCallID), "clientId", []byte{})
	frame := make([]byte, 4)
	for _, m := range []proto.Message{header, body} {
		text, err := proto.Marshal(m)
		if err != nil {
			return err
		}
		frame = protowire.AppendBytes(frame, text)
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	_, err := s.Conn.Write(frame)
	return err
}

// receive returns the next message, which must have a state. After the handshake it is not
// trusted before its token is unwrapped.
func (s *nameSASL) receive(state protoreflect.EnumNumber) (proto.Message, error) {
	var length [4]byte
	if _, err := io.ReadFull(s.in, length[:]); err != nil {
		return nil, err
	}
	n, limit := binary.BigEndian.Uint32(length[:]), uint32(maxResponse)
	if s.sealer != nil {
		limit = maxNameNodeResponse
	}
	if n > limit {
		return nil, fmt.Errorf("%w: it answers %q", errNotNameNode, length)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(s.in, frame); err != nil {
		return nil, err
	}
	header, body := message("common.RpcResponseHeader"), message("common.RpcSasl")
	text, size := protowire.ConsumeBytes(frame)
	if size < 0 {
		return nil, errMalformed
	}
	if err := proto.Unmarshal(text, header); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if field(header, "status").Enum() != 0 {
		return nil, s.refusal(rejected{field(header, "exceptionClassName").String(), field(header, "errorMsg").String()})
	}
	if text, size = protowire.ConsumeBytes(frame[size:]); size < 0 {
		return nil, errMalformed
	}
	if err := proto.Unmarshal(text, body); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	switch got := field(body, "state").Enum(); {
	case got == state && int32(field(header, "callId").Uint()) == saslCallID:
		return body, nil
	case got == saslSuccess && state == saslNegotiate:
		return nil, errNoLogin
	default:
		return nil, fmt.Errorf("%w: a message of state %d instead of %d", errMalformed, got, state)
	}
}

// refusal returns an error answer outside of a token. As nothing is signed, it must not pass for the
// answer to a call, such as that a file does not exist: the connection has failed.
func (s *nameSASL) refusal(answer rejected) error {
	_, err := classifyResponse(answer)
	if r, ok := errors.AsType[*nameNodeError](err); ok && (s.sealer != nil || r.sentinel != fs.ErrPermission) {
		r.sentinel = nil
	}
	return err
}

func (s *nameSASL) Write(p []byte) (n int, err error) {
	if !s.started {
		if len(p) != len(saslHeader) || !bytes.HasPrefix(p, saslHeader[:6]) {
			return 0, errors.New("the client library begins with an unknown header")
		}
		s.started = true
		return len(p), nil
	}
	if s.sealer == nil {
		return s.Conn.Write(p)
	}
	for n < len(p) {
		piece := p[n:min(len(p), n+s.room)]
		token, err := s.sealer.Wrap(piece, s.level)
		if err == nil {
			err = s.send(saslWrap, token)
		}
		if err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

func (s *nameSASL) Read(p []byte) (int, error) {
	if s.sealer == nil {
		return s.in.Read(p)
	}
	for len(s.ready) == 0 {
		wrapped, err := s.receive(saslWrap)
		if err != nil {
			return 0, err
		}
		if s.ready, err = s.sealer.Unwrap(field(wrapped, "token").Bytes(), s.level); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// sealer seals and opens messages after a handshake. *sasl.GSS implements it.
type sealer interface {
	Wrap(message []byte, level sasl.Level) ([]byte, error)
	Unwrap(token []byte, level sasl.Level) ([]byte, error)
}

// login is a user with tickets.
type login interface {
	name() string // with the realm
	begin(service string) (token []byte, gss *sasl.GSS, err error)
}

// tickets gets tickets for services. *client.Client of gokrb5 implements it.
type tickets interface {
	GetServiceTicket(service string) (messages.Ticket, types.EncryptionKey, error)
}

// kerberosLogin is a login of a principal.
type kerberosLogin struct {
	tickets
	user  types.PrincipalName
	realm string
}

func (k kerberosLogin) name() string { return k.user.PrincipalNameString() + "@" + k.realm }

// begin returns the first token for a service (RFC 4121, section 4.1) and the context that it
// begins. The key of the context is new, since tickets serve for many connections.
func (k kerberosLogin) begin(service string) ([]byte, *sasl.GSS, error) {
	ticket, key, err := k.GetServiceTicket(service)
	if err != nil {
		return nil, nil, fmt.Errorf("ticket for %s: %w", service, err)
	}
	auth, err := types.NewAuthenticator(k.realm, k.user)
	if err != nil {
		return nil, nil, err
	}
	if err := auth.GenerateSeqNumberAndSubKey(key.KeyType, len(key.KeyValue)); err != nil {
		return nil, nil, err
	}
	auth.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: contextChecksum(
		gssapi.ContextFlagReplay | gssapi.ContextFlagSequence | gssapi.ContextFlagConf | gssapi.ContextFlagInteg)}
	request, err := messages.NewAPReq(ticket, key, auth)
	if err != nil {
		return nil, nil, err
	}
	text, err := request.Marshal()
	if err != nil {
		return nil, nil, err
	}
	gss, err := sasl.NewGSS(auth.SubKey, uint64(auth.SeqNumber), false)
	kerberos5 := []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}
	return asn1tools.AddASNAppTag(append(append(kerberos5, 1, 0), text...), 0), gss, err
}

// contextChecksum returns the authenticator's checksum of RFC 4121, section 4.1.1: no channel
// bindings, and the context's flags.
func contextChecksum(flags uint32) []byte {
	b := make([]byte, 24)
	binary.LittleEndian.PutUint32(b, 16)
	binary.LittleEndian.PutUint32(b[20:], flags)
	return b
}
