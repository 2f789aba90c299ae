package hdfs

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quernmr/quern/dfs/hdfs/sasl"
)

const (
	maxPrivilegedPort = 1023
	cipherAES         = 2 // CipherSuite: AES/CTR/NoPadding

	encryptProperty = "dfs.encrypt.data.transfer"
	dataProperty    = "dfs.data.transfer.protection"
)

var handshakeMagic = []byte{0xde, 0xad, 0xbe, 0xef}

// errUnknownKey reports that a DataNode does not know the encryption key, as after a restart.
var errUnknownKey = errors.New("the DataNode does not know the encryption key")

// secureData authenticates a new connection to a DataNode as the configuration demands. The
// block's token proves that the NameNode allows the access.
func (c *cluster) secureData(raw net.Conn, token proto.Message) (net.Conn, error) {
	digest := &sasl.Digest{URI: "hdfs/0", Nonce: rand.Text(), Demand: c.security.data,
		User:     base64.StdEncoding.EncodeToString(field(token, "identifier").Bytes()),
		Password: base64.StdEncoding.EncodeToString(field(token, "password").Bytes())}
	if c.serverEncrypts.Load() || c.security.encrypt {
		digest.Demand = sasl.Demand{Property: encryptProperty, Levels: []sasl.Level{sasl.Privacy}}
		key, err := c.encryptionKey()
		if err != nil {
			return nil, err
		}
		if key != nil {
			digest.User = fmt.Sprintf("%d %s %s", int32(field(key, "keyId").Uint()), field(key, "blockPoolId").String(),
				base64.StdEncoding.EncodeToString(field(key, "nonce").Bytes()))
			digest.Password = base64.StdEncoding.EncodeToString(field(key, "encryptionKey").Bytes())
		}
	} else if addr, ok := raw.RemoteAddr().(*net.TCPAddr); ok && addr.Port <= maxPrivilegedPort && len(c.security.data.Levels) > 0 {
		// Only root can listen there: Hadoop takes that for authentication, and does no handshake.
		_, err := c.security.data.Choose([]sasl.Level{sasl.Authentication})
		return raw, err
	}
	if len(digest.Demand.Levels) == 0 {
		return raw, nil
	}
	if err := raw.SetDeadline(time.Now().Add(c.fs.options.Timeout)); err != nil {
		return nil, err
	}
	secured, err := dataHandshake(raw, digest)
	if errors.Is(err, errUnknownKey) {
		c.forgetKey()
	}
	if err != nil {
		return nil, fmt.Errorf("authenticate: %w", err)
	}
	return secured, raw.SetDeadline(time.Time{})
}

// dataHandshake does the handshake, and returns the connection for what follows.
func dataHandshake(raw net.Conn, digest *sasl.Digest) (net.Conn, error) {
	if err := sendHandshake(raw, handshakeMagic, nil); err != nil {
		return nil, err
	}
	challenge, err := receiveHandshake(raw)
	if err != nil {
		return nil, err
	}
	response, err := digest.Respond(field(challenge, "payload").Bytes())
	if err != nil {
		return nil, err
	}
	var ciphers []proto.Message
	if digest.Level == sasl.Privacy {
		ciphers = append(ciphers, message("CipherOption", "suite", protoreflect.EnumNumber(cipherAES)))
	}
	if err := sendHandshake(raw, nil, response, ciphers...); err != nil {
		return nil, err
	}
	final, err := receiveHandshake(raw)
	if err != nil {
		return nil, err
	}
	if err := digest.Verify(field(final, "payload").Bytes()); err != nil {
		return nil, err
	}
	if digest.Level == sasl.Authentication {
		return raw, nil
	}
	frames, err := digest.Frames()
	if err != nil {
		return nil, err
	}
	for _, option := range parts(final, "cipherOption") {
		return aesConn(raw, frames, option)
	}
	return frames.Conn(raw), nil
}

// aesConn returns a connection that uses the AES keys in the DataNode's answer.
func aesConn(raw net.Conn, frames *sasl.Frames, option proto.Message) (net.Conn, error) {
	if suite := field(option, "suite").Enum(); suite != cipherAES {
		return nil, fmt.Errorf("cipher suite %d: %w", suite, ErrUnsupported)
	}
	in, err := frames.Open(field(option, "inKey").Bytes())
	if err != nil {
		return nil, err
	}
	out, err := frames.Open(field(option, "outKey").Bytes())
	if err != nil {
		return nil, err
	}
	return sasl.AES{InKey: in, InIV: field(option, "inIv").Bytes(), OutKey: out, OutIV: field(option, "outIv").Bytes()}.Conn(raw)
}

func sendHandshake(raw net.Conn, prefix, payload []byte, ciphers ...proto.Message) error {
	body := message("DataTransferEncryptorMessage", "status", protoreflect.EnumNumber(0), "cipherOption", ciphers)
	if payload != nil {
		body = message("DataTransferEncryptorMessage", "status", protoreflect.EnumNumber(0), "payload", payload, "cipherOption", ciphers)
	}
	text, err := proto.Marshal(body)
	if err != nil {
		return err
	}
	_, err = raw.Write(protowire.AppendBytes(prefix, text))
	return err
}

// receiveHandshake reads a message: its length as a varint, then that many bytes. It reads no
// byte after it.
func receiveHandshake(raw net.Conn) (proto.Message, error) {
	var head []byte
	for len(head) == 0 || head[len(head)-1] >= 0x80 && len(head) < 5 {
		head = append(head, 0)
		if _, err := io.ReadFull(raw, head[len(head)-1:]); err != nil {
			return nil, fmt.Errorf("%w; does it listen without protection?", err)
		}
	}
	size, n := protowire.ConsumeVarint(head)
	if n < 0 || size > maxResponse {
		return nil, errMalformed
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(raw, text); err != nil {
		return nil, err
	}
	answer := message("DataTransferEncryptorMessage")
	if err := proto.Unmarshal(text, answer); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	switch field(answer, "status").Enum() {
	case 0:
		return answer, nil
	case 1:
		return nil, fmt.Errorf("%w: %s", errUnknownKey, field(answer, "message").String())
	default:
		return nil, fmt.Errorf("the DataNode refuses: %s", field(answer, "message").String())
	}
}

// encryptionKey returns the key with which DataNodes encrypt, or nil if the NameNode has none.
func (c *cluster) encryptionKey() (proto.Message, error) {
	c.mu.Lock()
	key := c.dataKey
	c.mu.Unlock()
	if key != nil && time.Now().UnixMilli() < int64(field(key, "expiryDate").Uint()) {
		return key, nil
	}
	resp := message("GetDataEncryptionKeyResponse")
	if err := c.call("getDataEncryptionKey", message("GetDataEncryptionKeyRequest"), resp); err != nil {
		return nil, fmt.Errorf("get the encryption key of DataNodes: %w", err)
	}
	if !has(resp, "dataEncryptionKey") {
		return nil, nil
	}
	key = part(resp, "dataEncryptionKey")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dataKey = key
	return key, nil
}

func (c *cluster) forgetKey() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dataKey = nil
}

// requestToken returns the block's token in a request to a DataNode.
func requestToken(kind string, request []byte) (proto.Message, error) {
	text, n := protowire.ConsumeBytes(request)
	if n < 0 {
		return nil, errMalformed
	}
	op := message(kind)
	if err := (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(text, op); err != nil {
		return nil, err
	}
	return part(part(part(op, "header"), "baseHeader"), "token"), nil
}

// secureFunc authenticates a connection with a block's token, and returns the one for what
// follows.
type secureFunc = func(raw net.Conn, token proto.Message) (net.Conn, error)
