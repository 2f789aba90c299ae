package hdfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"google.golang.org/protobuf/proto"
)

// delegationKind is the kind of tokens that stand for a user's login at a NameNode.
const delegationKind = "HDFS_DELEGATION_TOKEN"

// token is a delegation token. The service says which NameNodes take it.
type token struct {
	identifier, password []byte
	kind, service        string
}

// A token file is Hadoop's: HADOOP_TOKEN_FILE_LOCATION, hdfs fetchdt.
//
//	4 bytes  HDTS
//	1 byte   00: what follows; 01: a CredentialsProto after its length as a varint
//	         number of tokens, then for each: alias, identifier, password, kind, service
//	         number of secrets, which are left unread
//
// Numbers are Hadoop's vints, and texts have their lengths before them.
const (
	tokenMagic   = "HDTS"
	tokenVints   = 0
	tokenProto   = 1
	maxTokenFile = 1 << 20
)

var errTokenFile = errors.New("damaged token file")

// writeTokens returns the content of a token file.
func writeTokens(tokens []token) []byte {
	b := appendVint(append([]byte(tokenMagic), tokenVints), len(tokens))
	for _, t := range tokens {
		for _, text := range [][]byte{[]byte(t.service), t.identifier, t.password, []byte(t.kind), []byte(t.service)} {
			b = append(appendVint(b, len(text)), text...)
		}
	}
	return appendVint(b, 0)
}

// readTokens reads a token file.
func readTokens(file []byte) (tokens []token, err error) {
	if len(file) <= len(tokenMagic) || string(file[:len(tokenMagic)]) != tokenMagic {
		return nil, fmt.Errorf("%w: it does not begin with %s", errTokenFile, tokenMagic)
	}
	version, in := file[len(tokenMagic)], bytes.NewReader(file[len(tokenMagic)+1:])
	switch version {
	case tokenVints:
		return readVintTokens(in)
	case tokenProto:
		return readProtoTokens(in)
	default:
		return nil, fmt.Errorf("%w: version %d", errTokenFile, version)
	}
}

func readVintTokens(in *bytes.Reader) (tokens []token, err error) {
	n, err := readVint(in)
	if err != nil {
		return nil, err
	}
	for range n {
		var texts [5][]byte
		for i := range texts {
			if texts[i], err = readText(in); err != nil {
				return nil, err
			}
		}
		tokens = append(tokens, token{texts[1], texts[2], string(texts[3]), string(texts[4])})
	}
	return tokens, nil
}

func readProtoTokens(in *bytes.Reader) (tokens []token, err error) {
	n, err := binary.ReadUvarint(in)
	if err != nil || n > uint64(in.Len()) {
		return nil, errTokenFile
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(in, text); err != nil {
		return nil, errTokenFile
	}
	all := message("common.Credentials")
	if err := proto.Unmarshal(text, all); err != nil {
		return nil, fmt.Errorf("%w: %w", errTokenFile, err)
	}
	for _, entry := range parts(all, "tokens") {
		tokens = append(tokens, tokenOf(part(entry, "token")))
	}
	return tokens, nil
}

// tokenOf converts a NameNode's message.
func tokenOf(m proto.Message) token {
	return token{field(m, "identifier").Bytes(), field(m, "password").Bytes(), field(m, "kind").String(), field(m, "service").String()}
}

// message returns the token as a NameNode reads it.
func (t token) message() proto.Message {
	return message("common.Token", "identifier", t.identifier, "password", t.password, "kind", t.kind, "service", t.service)
}

// user returns the name of the user that a delegation token stands for. The identifier begins with
// 00, the user, the renewer and the real user.
func (t token) user() (string, error) {
	in := bytes.NewReader(t.identifier)
	version, err := in.ReadByte()
	if err != nil || version != 0 {
		return "", fmt.Errorf("%w: an identifier of an unknown version", errTokenFile)
	}
	user, err := readText(in)
	if err != nil || len(user) == 0 {
		return "", fmt.Errorf("%w: an identifier without a user", errTokenFile)
	}
	return string(user), nil
}

// appendVint appends a number that is not negative: up to 127 in one byte, else in as many bytes as
// it has, after a byte with -112 minus their number.
func appendVint(b []byte, n int) []byte {
	if n <= 127 {
		return append(b, byte(n))
	}
	size := (bits.Len(uint(n)) + 7) / 8
	b = append(b, byte(-112-size))
	for i := size - 1; i >= 0; i-- {
		b = append(b, byte(n>>(8*i)))
	}
	return b
}

// readVint reads a number that is not negative.
func readVint(in *bytes.Reader) (int, error) {
	first, err := in.ReadByte()
	if err != nil {
		return 0, errTokenFile
	}
	if int8(first) >= 0 {
		return int(first), nil
	}
	size := -112 - int(int8(first))
	if size < 1 || size > 4 {
		return 0, errTokenFile
	}
	n := 0
	for range size {
		next, err := in.ReadByte()
		if err != nil {
			return 0, errTokenFile
		}
		n = n<<8 | int(next)
	}
	return n, nil
}

// readText reads a length, and that many bytes.
func readText(in *bytes.Reader) ([]byte, error) {
	n, err := readVint(in)
	if err != nil || n > in.Len() {
		return nil, errTokenFile
	}
	text := make([]byte, n)
	_, err = io.ReadFull(in, text)
	return text, err
}
