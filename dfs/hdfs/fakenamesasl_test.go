package hdfs

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quernmr/quern/dfs/hdfs/sasl"
)

// securedHDFS is a fake HDFS with the handshakes of a secured one: a NameNode at nn:8020 with
// Kerberos, and DataNodes with DIGEST-MD5.
type securedHDFS struct {
	*fakeHDFS
	t        testing.TB
	keys     *keytab.Keytab
	rpc      byte   // levels that the NameNode offers, a bit for each
	unsigned string // qop in the NameNode's first message, which is not signed
	qop      string // that DataNodes offer; empty: they do no handshake
	port     int    // of DataNodes; 0: their connections have none
	cipher   string
	aes      bool
	encrypts bool              // DataNodes take the encryption key instead of tokens
	oldKey   bool              // the NameNode's first encryption key is unknown to DataNodes
	breaks   bool              // the next DataNode closes its connection in the middle of a read
	forged   int               // when an error is put into the NameNode's first connection: inHandshake, afterHandshake
	issued   map[string]string // delegation tokens: password by user
	names    map[string]string // services of NameNodes by address; nil: nn/nn at nn:8020
	standby  string            // address of a NameNode in standby; empty: none

	mu      sync.Mutex
	overRPC []byte // received by the NameNode after the handshake
	overTCP []byte // received by DataNodes after the handshake
	users   map[string]bool
	keyCall int
}

const (
	testRealm = "R.TEST"

	inHandshake    = 1
	afterHandshake = 2
)

// forge sends an error that is not signed, once, and reports whether it did.
func (h *securedHDFS) forge(conn net.Conn, when int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.forged != when {
		return false
	}
	h.forged = 0
	conn.Write(rpcFrame(message("common.RpcResponseHeader", "callId", uint32(1<<32+saslCallID), "status", protoreflect.EnumNumber(1),
		"exceptionClassName", "java.io.FileNotFoundException", "errorMsg", "forged")))
	return true
}

// begin makes a FS with a user's forged tickets.
func (h *securedHDFS) begin(t *testing.T, conf Conf) *FS {
	t.Helper()
	h.t, h.keys = t, keytab.New()
	if h.fakeHDFS == nil {
		h.fakeHDFS = &fakeHDFS{nodes: 2}
	}
	if h.names == nil {
		h.names = map[string]string{"nn:8020": "nn/nn"}
	}
	for _, service := range h.names {
		if err := h.keys.AddEntry(service, testRealm, "secret of "+service, time.Unix(1, 0), 1, etypeID.AES256_CTS_HMAC_SHA1_96); err != nil {
			t.Fatal(err)
		}
	}
	h.issued = make(map[string]string)
	h.lengths, h.data, h.existing, h.users = make(map[uint64]uint64), make(map[uint64][]byte), make(map[string]bool), make(map[string]bool)
	all := Conf{"hadoop.security.authentication": "kerberos", "dfs.namenode.kerberos.principal": "nn/_HOST@" + testRealm, "dfs.blocksize": "300k"}
	maps.Copy(all, conf)
	f := New(Options{Conf: all, Dial: h.dial, RetryFor: 5 * time.Second})
	f.login = func() (login, error) {
		return kerberosLogin{h, types.NewPrincipalName(1, "ann"), testRealm}, nil
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// GetServiceTicket implements tickets.
func (h *securedHDFS) GetServiceTicket(service string) (messages.Ticket, types.EncryptionKey, error) {
	if !slices.Contains(slices.Collect(maps.Values(h.names)), service) {
		return messages.Ticket{}, types.EncryptionKey{}, fmt.Errorf("no such service: %s", service)
	}
	now := time.Now()
	return messages.NewTicket(types.NewPrincipalName(1, "ann"), testRealm, types.NewPrincipalName(2, service), testRealm, types.NewKrbFlags(),
		h.keys, etypeID.AES256_CTS_HMAC_SHA1_96, 1, now, now, now.Add(time.Hour), now.Add(time.Hour))
}

// portConn is a connection to a port.
type portConn struct {
	net.Conn
	port int
}

func (c portConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: c.port} }

func (h *securedHDFS) dial(_ context.Context, _, addr string) (net.Conn, error) {
	client, server := net.Pipe()
	if h.port > 0 && h.names[addr] == "" {
		client = portConn{client, h.port}
	}
	go func() {
		defer server.Close()
		if h.names[addr] != "" {
			h.serveNames(addr, server)
			return
		}
		if secured, err := h.acceptData(server); err == nil {
			h.serveData(addr, secured)
		}
	}()
	return client, nil
}

// rpcFrame frames messages for the NameNode's protocol.
func rpcFrame(ms ...proto.Message) []byte {
	frame := make([]byte, 4)
	for _, m := range ms {
		text, err := proto.Marshal(complete(m))
		if err != nil {
			panic(err)
		}
		frame = protowire.AppendBytes(frame, text)
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// readRPC reads a frame's messages.
func readRPC(in io.Reader) (ms [][]byte, err error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(in, frame); err != nil {
		return nil, err
	}
	for len(frame) > 0 {
		m, n := protowire.ConsumeBytes(frame)
		if n < 0 {
			return nil, errMalformed
		}
		ms, frame = append(ms, m), frame[n:]
	}
	return ms, nil
}

// complete sets missing required fields to zero.
func complete(m proto.Message) proto.Message {
	r := m.ProtoReflect()
	for i := range r.Descriptor().Fields().Len() {
		fd := r.Descriptor().Fields().Get(i)
		switch {
		case fd.Cardinality() == protoreflect.Required && !r.Has(fd) && fd.Message() == nil:
			r.Set(fd, fd.Default())
			if fd.Kind() == protoreflect.BytesKind {
				r.Set(fd, protoreflect.ValueOfBytes([]byte{}))
			}
		case fd.Cardinality() == protoreflect.Required && !r.Has(fd), fd.Message() != nil && !fd.IsList() && r.Has(fd):
			complete(r.Mutable(fd).Message().Interface())
		case fd.IsList() && fd.Message() != nil && r.Has(fd):
			for _, part := range parts(m, string(fd.Name())) {
				complete(part)
			}
		}
	}
	return m
}

func saslAnswer(state protoreflect.EnumNumber, fields ...any) []byte {
	return rpcFrame(message("common.RpcResponseHeader", "callId", uint32(1<<32+saslCallID), "status", protoreflect.EnumNumber(0)),
		message("common.RpcSasl", append([]any{"state", state}, fields...)...))
}

// serveNames is a NameNode's side of a connection.
func (h *securedHDFS) serveNames(addr string, conn net.Conn) {
	in := bufio.NewReader(conn)
	user, context, level, err := h.acceptName(addr, in, conn)
	if err != nil {
		return
	}
	plain, write := io.Reader(in), func(b []byte) error { _, err := conn.Write(b); return err }
	if level > sasl.Authentication {
		r, w := io.Pipe()
		go func() {
			for {
				ms, err := readRPC(in)
				if err == nil && len(ms) != 2 {
					err = errMalformed
				}
				wrapped, text := message("common.RpcSasl"), []byte(nil)
				if err == nil {
					err = proto.Unmarshal(ms[1], wrapped)
				}
				if err == nil {
					h.mu.Lock()
					h.overRPC = append(h.overRPC, ms[1]...)
					h.mu.Unlock()
					text, err = context.Unwrap(field(wrapped, "token").Bytes(), level)
				}
				if err != nil {
					w.CloseWithError(err)
					return
				}
				w.Write(text)
			}
		}()
		plain, write = r, func(b []byte) error {
			token, err := context.Wrap(b, level)
			if err == nil {
				_, err = conn.Write(saslAnswer(saslWrap, "token", token))
			}
			return err
		}
	}
	first, err := readRPC(plain)
	if err != nil || len(first) != 2 {
		return
	}
	about := message("common.IpcConnectionContext")
	if proto.Unmarshal(first[1], about) != nil {
		return
	}
	acts := field(part(about, "userInfo"), "effectiveUser").String()
	h.mu.Lock()
	h.users[acts] = true
	h.mu.Unlock()
	if acts != user && acts != "bob" { // ann may act as bob alone; a token's holder as no other user
		readRPC(plain) // the pipe has no buffer
		write(rpcFrame(message("common.RpcResponseHeader", "callId", uint32(1<<32-3), "status", protoreflect.EnumNumber(2),
			"exceptionClassName", "org.apache.hadoop.security.authorize.AuthorizationException", "errorMsg", "User: "+user+" is not allowed to impersonate "+acts)))
		return
	}
	for {
		call, err := readRPC(plain)
		if err != nil || len(call) != 3 {
			return
		}
		header, request := message("common.RpcRequestHeader"), message("common.RequestHeader")
		if proto.Unmarshal(call[0], header) != nil || proto.Unmarshal(call[1], request) != nil {
			return
		}
		method := field(request, "methodName").String()
		if method == "getFileInfo" && h.forge(conn, afterHandshake) {
			return
		}
		name := strings.ToUpper(method[:1]) + method[1:]
		if strings.HasSuffix(method, "DelegationToken") {
			name = "common." + name
		}
		req, resp := message(name+"Request"), message(name+"Response")
		if proto.Unmarshal(call[2], req) != nil {
			return
		}
		answer := message("common.RpcResponseHeader", "callId", uint32(field(header, "callId").Int()), "status", protoreflect.EnumNumber(0))
		reply := []proto.Message{answer, resp}
		if addr == h.standby {
			reply = []proto.Message{message("common.RpcResponseHeader", "callId", uint32(field(header, "callId").Int()),
				"status", protoreflect.EnumNumber(1), "exceptionClassName", "org.apache.hadoop.ipc.StandbyException", "errorMsg", "standby")}
		} else if err := h.answer(acts, method, req, resp); err != nil {
			reply = []proto.Message{message("common.RpcResponseHeader", "callId", uint32(field(header, "callId").Int()),
				"status", protoreflect.EnumNumber(1), "exceptionClassName", "java.io.IOException", "errorMsg", err.Error())}
		}
		if write(rpcFrame(reply...)) != nil {
			return
		}
	}
}

// acceptName does the NameNode's side of the handshake, and returns the user.
func (h *securedHDFS) acceptName(addr string, in *bufio.Reader, conn net.Conn) (string, sealer, sasl.Level, error) {
	receive := func(state protoreflect.EnumNumber) (proto.Message, error) {
		ms, err := readRPC(in)
		if err != nil || len(ms) != 2 {
			return nil, errors.Join(errMalformed, err)
		}
		m := message("common.RpcSasl")
		if err := proto.Unmarshal(ms[1], m); err != nil || field(m, "state").Enum() != state {
			return nil, errors.Join(errMalformed, err)
		}
		return m, nil
	}
	head := make([]byte, len(saslHeader))
	if _, err := io.ReadFull(in, head); err != nil || !bytes.Equal(head, saslHeader) {
		return "", nil, 0, errors.Join(errMalformed, err)
	}
	if _, err := receive(saslNegotiate); err != nil {
		return "", nil, 0, err
	}
	if h.forge(conn, inHandshake) {
		return "", nil, 0, errMalformed
	}
	negotiation := message("common.RpcSasl").ProtoReflect()
	auths := negotiation.Mutable(negotiation.Descriptor().Fields().ByName("auths")).List()
	for _, values := range [][]string{{"TOKEN", "DIGEST-MD5", "", "default", fmt.Sprintf(`realm="default",nonce="servers",qop="%s",charset=utf-8,algorithm=md5-sess,cipher="3des,rc4"`, cmp.Or(h.unsigned, h.tokenQops()))}, {"KERBEROS", "GSSAPI", "nn", "nn"}} {
		auth := auths.AppendMutable().Message()
		for i, v := range values {
			fd := auth.Descriptor().Fields().Get(i)
			if fd.Kind() == protoreflect.BytesKind {
				auth.Set(fd, value([]byte(v)))
			} else {
				auth.Set(fd, value(v))
			}
		}
	}
	conn.Write(saslAnswer(saslNegotiate, "auths", parts(negotiation.Interface(), "auths")))
	initial, err := receive(saslInitiate)
	if err != nil {
		return "", nil, 0, err
	}
	text := field(initial, "token").Bytes()
	if auths := parts(initial, "auths"); len(auths) == 1 && field(auths[0], "method").String() == "TOKEN" {
		return h.acceptToken(string(text), conn)
	}
	at := bytes.Index(text, []byte{0x12, 0x01, 0x02, 0x02, 1, 0}) // the end of Kerberos's OID, and the kind of the token
	if at < 0 {
		return "", nil, 0, errMalformed
	}
	var request messages.APReq
	if err := request.Unmarshal(text[at+6:]); err != nil {
		return "", nil, 0, err
	}
	if service := request.Ticket.SName.PrincipalNameString(); service != h.names[addr] {
		return "", nil, 0, fmt.Errorf("a ticket for %s", service)
	}
	if err := request.Ticket.DecryptEncPart(h.keys, nil); err != nil {
		return "", nil, 0, err
	}
	if err := request.DecryptAuthenticator(request.Ticket.DecryptedEncPart.Key); err != nil {
		return "", nil, 0, err
	}
	context, err := sasl.NewGSS(request.Authenticator.SubKey, uint64(request.Authenticator.SeqNumber), true)
	if err != nil {
		return "", nil, 0, err
	}
	offer, err := context.Wrap([]byte{h.rpc, 0, 1, 0}, sasl.Integrity) // messages of 256 bytes
	if err != nil {
		return "", nil, 0, err
	}
	conn.Write(saslAnswer(saslChallenge, "token", offer))
	response, err := receive(saslResponse)
	if err != nil {
		return "", nil, 0, err
	}
	choice, err := context.Unwrap(field(response, "token").Bytes(), sasl.Integrity)
	if err != nil || len(choice) != 4 || h.rpc&choice[0] == 0 {
		return "", nil, 0, errors.Join(errMalformed, err)
	}
	conn.Write(saslAnswer(saslSuccess))
	return "ann@" + testRealm, context, map[byte]sasl.Level{1: sasl.Authentication, 2: sasl.Integrity, 4: sasl.Privacy}[choice[0]], nil
}

// tokenQops are the levels that the NameNode offers, as DIGEST-MD5 names them.
func (h *securedHDFS) tokenQops() string {
	var names []string
	for i, name := range []string{"auth", "auth-int", "auth-conf"} {
		if h.rpc&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// testIdentifier is the identifier of a user's token.
func testIdentifier(user string) []byte {
	b := append([]byte{0, byte(len(user))}, user...)
	return append(b, 3, 'a', 'n', 'n', 0, 1, 2, 3, 4)
}

// acceptToken does the rest of the handshake with a delegation token.
func (h *securedHDFS) acceptToken(response string, conn net.Conn) (string, sealer, sasl.Level, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for user, password := range h.issued {
		d := &digestServer{user: base64.StdEncoding.EncodeToString(testIdentifier(user)), password: base64.StdEncoding.EncodeToString([]byte(password)),
			realm: "default", uri: "/default", qops: h.tokenQops()}
		if server, err := d.accept(response); err == nil {
			conn.Write(saslAnswer(saslSuccess, "token", []byte(d.rspauth)))
			return user, server, map[string]sasl.Level{"auth": 0, "auth-int": 1, "auth-conf": 2}[d.qop], nil
		}
	}
	conn.Write(rpcFrame(message("common.RpcResponseHeader", "callId", uint32(1<<32+saslCallID), "status", protoreflect.EnumNumber(2),
		"exceptionClassName", "org.apache.hadoop.security.token.SecretManager$InvalidToken", "errorMsg", "token can't be found in cache")))
	return "", nil, 0, errMalformed
}

// answer answers a call.
func (h *securedHDFS) answer(user, method string, req, resp proto.Message) error {
	switch method {
	case "getDelegationToken":
		h.mu.Lock()
		defer h.mu.Unlock()
		h.issued[user] = fmt.Sprint("password ", len(h.issued))
		proto.Merge(resp, message("common.GetDelegationTokenResponse", "token", token{testIdentifier(user), []byte(h.issued[user]), delegationKind, ""}.message()))
	case "renewDelegationToken", "cancelDelegationToken":
		t := tokenOf(part(req, "token"))
		owner, err := t.user()
		h.mu.Lock()
		defer h.mu.Unlock()
		if err != nil || h.issued[owner] != string(t.password) || user != "ann@"+testRealm {
			return fmt.Errorf("%s renews or cancels the token of %s: %w", user, owner, err)
		}
		if method == "cancelDelegationToken" {
			delete(h.issued, owner)
			return nil
		}
		proto.Merge(resp, message("common.RenewDelegationTokenResponse", "newExpiryTime", uint64(testExpiry.UnixMilli())))
	case "getServerDefaults":
		proto.Merge(resp, complete(message("GetServerDefaultsResponse", "serverDefaults", message("FsServerDefaults", "blockSize", uint64(1<<20),
			"replication", uint32(2), "encryptDataTransfer", h.encrypts))))
	case "getFileInfo":
		proto.Merge(resp, complete(message("GetFileInfoResponse", "fs", h.status())))
	case "getBlockLocations":
		proto.Merge(resp, complete(message("GetBlockLocationsResponse", "locations", h.locations())))
	case "getDataEncryptionKey":
		h.mu.Lock()
		h.keyCall++
		id := uint32(7)
		if h.oldKey && h.keyCall == 1 {
			id = 6
		}
		h.mu.Unlock()
		if h.encrypts {
			proto.Merge(resp, message("GetDataEncryptionKeyResponse", "dataEncryptionKey", message("DataEncryptionKey", "keyId", id, "blockPoolId", "bp",
				"nonce", []byte("nonce"), "encryptionKey", []byte("password"), "expiryDate", uint64(time.Now().Add(time.Hour).UnixMilli()))))
		}
	default:
		err := h.Execute(method, req, resp)
		if method == "addBlock" && err == nil {
			block := part(resp, "block").ProtoReflect()
			block.Set(block.Descriptor().Fields().ByName("blockToken"), protoreflect.ValueOfMessage(blockToken().ProtoReflect()))
		}
		return err
	}
	return nil
}

var testExpiry = time.Unix(4e9, 0)

func blockToken() proto.Message {
	return message("common.Token", "identifier", []byte("block"), "password", []byte("password"), "kind", "HDFS_BLOCK_TOKEN", "service", "")
}

// status describes the only file.
func (h *securedHDFS) status() proto.Message {
	size := uint64(0)
	h.fakeHDFS.mu.Lock()
	defer h.fakeHDFS.mu.Unlock()
	for _, id := range h.blocks {
		size += uint64(len(h.data[id]))
	}
	return message("HdfsFileStatus", "fileType", protoreflect.EnumNumber(2), "path", []byte{}, "fileId", uint64(7), "length", size, "blocksize", uint64(300<<10))
}

func (h *securedHDFS) locations() proto.Message {
	h.fakeHDFS.mu.Lock()
	defer h.fakeHDFS.mu.Unlock()
	var blocks []proto.Message
	at := uint64(0)
	for _, id := range h.blocks {
		n := uint64(len(h.data[id]))
		blocks = append(blocks, message("LocatedBlock", "b", message("ExtendedBlock", "poolId", "p", "blockId", id, "generationStamp", uint64(1), "numBytes", n),
			"offset", at, "corrupt", false, "locs", []proto.Message{h.node(1), h.node(2)}, "blockToken", blockToken()))
		at += n
	}
	return message("LocatedBlocks", "fileLength", at, "blocks", blocks)
}
