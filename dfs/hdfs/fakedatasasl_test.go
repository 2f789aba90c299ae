package hdfs

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rc4"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quernmr/quern/dfs/hdfs/sasl"
)

// serveData is a DataNode's side of a secured connection.
func (h *securedHDFS) serveData(addr string, conn io.ReadWriter) {
	in := bufio.NewReader(conn)
	op, err := in.Peek(3)
	if err != nil {
		return
	}
	if bytes.Equal(op, writeOp) {
		h.receive(addr, in, conn)
		return
	}
	in.Discard(3)
	size, err := binary.ReadUvarint(in)
	if err != nil {
		return
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(in, text); err != nil {
		return
	}
	request := message("OpReadBlock")
	if proto.Unmarshal(text, request) != nil {
		return
	}
	id := field(part(part(part(request, "header"), "baseHeader"), "block"), "blockId").Uint()
	h.fakeHDFS.mu.Lock()
	data := h.data[id]
	h.fakeHDFS.mu.Unlock()
	const chunk = 512
	from := int(field(request, "offset").Uint()) / chunk * chunk
	sum := message("Checksum", "type", protoreflect.EnumNumber(2), "bytesPerChecksum", uint32(chunk))
	answer := message("BlockOpResponse", "status", protoreflect.EnumNumber(0), "readOpChecksumInfo",
		message("ReadOpChecksumInfo", "checksum", sum, "chunkOffset", uint64(from)))
	text, _ = proto.Marshal(answer)
	if _, err := conn.Write(protowire.AppendBytes(nil, text)); err != nil {
		return
	}
	for at := from; ; at += 64 << 10 {
		piece := data[min(at, len(data)):min(at+64<<10, len(data))]
		if _, err := conn.Write(inPacket(h.t, piece, chunk, crc32.MakeTable(crc32.Castagnoli))); err != nil || len(piece) == 0 {
			return
		}
		h.mu.Lock()
		broken := h.breaks
		h.breaks = false
		h.mu.Unlock()
		if broken {
			return
		}
	}
}

// acceptData does the DataNode's side of the DIGEST-MD5 handshake, by RFC 2831.
func (h *securedHDFS) acceptData(conn net.Conn) (io.ReadWriter, error) {
	if h.qop == "" {
		return conn, nil
	}
	magic := make([]byte, 4)
	if _, err := io.ReadFull(conn, magic); err != nil || !bytes.Equal(magic, handshakeMagic) {
		return nil, errors.Join(errMalformed, err)
	}
	if _, err := receiveHandshake(conn); err != nil {
		return nil, err
	}
	challenge := fmt.Sprintf(`realm="0",nonce="servers",qop="%s",charset=utf-8,algorithm=md5-sess,cipher="%s"`, h.qop, cmp.Or(h.cipher, "3des,rc4"))
	if err := sendHandshake(conn, nil, []byte(challenge)); err != nil {
		return nil, err
	}
	response, err := receiveHandshake(conn)
	if err != nil {
		return nil, err
	}
	d := &digestServer{user: base64.StdEncoding.EncodeToString([]byte("block")), password: base64.StdEncoding.EncodeToString([]byte("password")),
		realm: "0", uri: "hdfs/0", qops: h.qop}
	if h.encrypts {
		d.user = "7 bp " + base64.StdEncoding.EncodeToString([]byte("nonce"))
	}
	server, err := d.accept(string(field(response, "payload").Bytes()))
	if err != nil {
		text, _ := proto.Marshal(message("DataTransferEncryptorMessage", "status", protoreflect.EnumNumber(1), "message", err.Error()))
		conn.Write(protowire.AppendBytes(nil, text))
		return nil, err
	}
	server.Conn, server.h = conn, h
	var options []proto.Message
	if h.aes && len(parts(response, "cipherOption")) > 0 {
		in, out, iv := []byte("0123456789abcdef"), []byte("fedcba9876543210"), []byte("an initial count")
		options = append(options, message("CipherOption", "suite", protoreflect.EnumNumber(2), "inKey", server.seal(in), "inIv", iv, "outKey", server.seal(out), "outIv", iv))
		block, _ := aes.NewCipher(in)
		server.aesIn = cipher.NewCTR(block, iv)
		block, _ = aes.NewCipher(out)
		server.aesOut = cipher.NewCTR(block, iv)
	}
	if err := sendHandshake(conn, nil, []byte(d.rspauth), options...); err != nil || d.qop == "auth" {
		return conn, err
	}
	return server, nil
}

// digestServer is the server's side of DIGEST-MD5, by RFC 2831.
type digestServer struct {
	user, password, realm, uri string
	qops                       string // that it offers

	qop, rspauth string // after accept
}

// accept checks a response, and returns the keys for what follows.
func (d *digestServer) accept(response string) (*sealedServer, error) {
	value := func(name string) string {
		_, rest, _ := strings.Cut(","+response, ","+name+"=")
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			rest, _, _ = strings.Cut(quoted, `"`)
			return rest
		}
		rest, _, _ = strings.Cut(rest, ",")
		return rest
	}
	d.qop = value("qop")
	if !strings.Contains(","+d.qops+",", ","+d.qop+",") || value("username") != d.user || value("digest-uri") != d.uri {
		return nil, errors.New("no such user or level")
	}
	hash := func(parts ...string) string {
		sum := md5.Sum([]byte(strings.Join(parts, "")))
		return string(sum[:])
	}
	a1 := hash(hash(d.user, ":", d.realm, ":", d.password), ":servers:", value("cnonce"))
	proof := func(prefix string) string {
		a2 := prefix + ":" + d.uri
		if d.qop != "auth" {
			a2 += ":00000000000000000000000000000000"
		}
		return fmt.Sprintf("%x", hash(fmt.Sprintf("%x", a1), ":servers:00000001:", value("cnonce"), ":", d.qop, ":", fmt.Sprintf("%x", hash(a2))))
	}
	if value("response") != proof("AUTHENTICATE") {
		return nil, errors.New("wrong password")
	}
	d.rspauth = "rspauth=" + proof("")
	server := &sealedServer{in: hash(a1, "Digest session key to client-to-server signing key magic constant"),
		out: hash(a1, "Digest session key to server-to-client signing key magic constant")}
	if d.qop == "auth-conf" {
		server.decrypt, _ = rc4.NewCipher([]byte(hash(a1, "Digest H(A1) to client-to-server sealing key magic constant")))
		server.encrypt, _ = rc4.NewCipher([]byte(hash(a1, "Digest H(A1) to server-to-client sealing key magic constant")))
	}
	return server, nil
}

// sealedServer is a DataNode's side of a sealed connection. It sends small frames, with other
// ends than packets.
type sealedServer struct {
	net.Conn
	h                *securedHDFS
	in, out          string // keys
	encrypt, decrypt *rc4.Cipher
	aesIn, aesOut    cipher.Stream
	sent, received   uint32
	ready            []byte
}

func (s *sealedServer) mac(key string, n uint32, b []byte) []byte {
	m := hmac.New(md5.New, []byte(key))
	m.Write(append(binary.BigEndian.AppendUint32(nil, n), b...))
	return m.Sum(nil)[:10]
}

func (s *sealedServer) seal(b []byte) []byte {
	b = append(bytes.Clone(b), s.mac(s.out, s.sent, b)...)
	if s.encrypt != nil {
		s.encrypt.XORKeyStream(b, b)
	}
	s.sent++
	return binary.BigEndian.AppendUint32(append(b, 0, 1), s.sent-1)
}

func (s *sealedServer) open(b []byte) ([]byte, error) {
	body := b[:len(b)-6]
	if s.decrypt != nil {
		s.decrypt.XORKeyStream(body, body)
	}
	message := body[:len(body)-10]
	if !bytes.Equal(body[len(body)-10:], s.mac(s.in, s.received, message)) {
		return nil, errors.New("a wrong HMAC")
	}
	s.received++
	return message, nil
}

// Wrap and Unwrap implement sealer, for a NameNode's side.
func (s *sealedServer) Wrap(b []byte, _ sasl.Level) ([]byte, error)   { return s.seal(b), nil }
func (s *sealedServer) Unwrap(b []byte, _ sasl.Level) ([]byte, error) { return s.open(bytes.Clone(b)) }

func (s *sealedServer) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; rest = rest[min(5000, len(rest)):] {
		b := bytes.Clone(rest[:min(5000, len(rest))])
		if s.aesOut != nil {
			s.aesOut.XORKeyStream(b, b)
		} else {
			b = s.seal(b)
			b = append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
		}
		if _, err := s.Conn.Write(b); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (s *sealedServer) Read(p []byte) (int, error) {
	if s.aesIn != nil {
		n, err := s.Conn.Read(p)
		s.note(p[:n])
		s.aesIn.XORKeyStream(p[:n], p[:n])
		return n, err
	}
	if len(s.ready) == 0 {
		var length [4]byte
		if _, err := io.ReadFull(s.Conn, length[:]); err != nil {
			return 0, err
		}
		b := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(s.Conn, b); err != nil {
			return 0, err
		}
		s.note(b)
		if len(b) > 64<<10 {
			return 0, errors.New("a frame of more than 64 KiB")
		}
		var err error
		if s.ready, err = s.open(b); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// note remembers what came over the network.
func (s *sealedServer) note(b []byte) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	s.h.overTCP = append(s.h.overTCP, b...)
}
