package sasl

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rc4"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Digest is the client's side of a DIGEST-MD5 exchange: a challenge, a response, and the server's
// proof that it knows the password too.
type Digest struct {
	User, Password string
	URI            string // service/host
	Demand         Demand
	Nonce          string // the client's; never used twice

	Level  Level  // chosen by Respond
	cipher string // at Privacy

	realm, nonce string // of the server
}

// levelQops has the name of each level in challenges and responses.
var levelQops = []string{"auth", "auth-int", "auth-conf"}

// rc4Keys has, for each cipher in the order of preference, the number of bytes of H(A1) that its
// keys are made of.
var rc4Keys = []struct {
	name  string
	bytes int
}{{"rc4", 16}, {"rc4-56", 7}, {"rc4-40", 5}}

// Respond chooses a level from a challenge and returns the response.
func (d *Digest) Respond(challenge []byte) ([]byte, error) {
	fields, err := directives(string(challenge))
	if err != nil {
		return nil, err
	}
	if algorithm := fields["algorithm"]; algorithm != "md5-sess" {
		return nil, fmt.Errorf("%w: algorithm %q", errChallenge, algorithm)
	}
	if d.realm, d.nonce = fields["realm"], fields["nonce"]; d.nonce == "" {
		return nil, fmt.Errorf("%w: no nonce", errChallenge)
	}
	var offered []Level
	for name := range strings.SplitSeq(fields["qop"], ",") {
		if i := slices.Index(levelQops, strings.TrimSpace(name)); i >= 0 {
			offered = append(offered, Level(i))
		}
	}
	if fields["qop"] == "" { // RFC 2831, section 2.1.1
		offered = []Level{Authentication}
	}
	if d.Level, err = d.Demand.Choose(offered); err != nil {
		return nil, err
	}
	response := fmt.Sprintf(`username=%s,realm=%s,nonce=%s,cnonce=%s,nc=00000001,qop=%s,digest-uri=%s,response=%s,charset=utf-8`,
		quote(d.User), quote(d.realm), quote(d.nonce), quote(d.Nonce), levelQops[d.Level], quote(d.URI), d.proof("AUTHENTICATE:"))
	if d.Level == Privacy {
		ciphers := strings.FieldsFunc(fields["cipher"], func(r rune) bool { return r == ',' || r == ' ' })
		for _, c := range slices.Backward(rc4Keys) {
			if slices.Contains(ciphers, c.name) {
				d.cipher = c.name
			}
		}
		if d.cipher == "" {
			return nil, fmt.Errorf("ciphers %q (dfs.encrypt.data.transfer.algorithm) without rc4: %w", fields["cipher"], ErrUnsupported)
		}
		response += ",cipher=" + d.cipher
	}
	return []byte(response), nil
}

// Verify checks the server's proof.
func (d *Digest) Verify(proof []byte) error {
	fields, err := directives(string(proof))
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(fields["rspauth"]), []byte(d.proof(":"))) != 1 {
		return errors.New("the server does not know the token's password")
	}
	return nil
}

// a1 returns H(A1) of RFC 2831, section 2.1.2.1.
func (d *Digest) a1() []byte {
	secret := md5.Sum([]byte(d.User + ":" + d.realm + ":" + d.Password))
	sum := md5.Sum([]byte(string(secret[:]) + ":" + d.nonce + ":" + d.Nonce))
	return sum[:]
}

// proof returns the response value; who begins A2 of the side that sends it.
func (d *Digest) proof(who string) string {
	a2 := who + d.URI
	if d.Level > Authentication {
		a2 += ":" + strings.Repeat("0", 32)
	}
	sum2 := md5.Sum([]byte(a2))
	sum := md5.Sum([]byte(strings.Join([]string{hex.EncodeToString(d.a1()), d.nonce, "00000001", d.Nonce, levelQops[d.Level], hex.EncodeToString(sum2[:])}, ":")))
	return hex.EncodeToString(sum[:])
}

// Frames returns the codec of the messages that follow, for Integrity and Privacy.
func (d *Digest) Frames() (*Frames, error) {
	key := func(size int, magic string) []byte {
		sum := md5.Sum(append(slices.Clone(d.a1()[:size]), magic...))
		return sum[:]
	}
	f := &Frames{
		seal: hmac.New(md5.New, key(16, "Digest session key to client-to-server signing key magic constant")),
		open: hmac.New(md5.New, key(16, "Digest session key to server-to-client signing key magic constant")),
	}
	if d.Level < Privacy {
		return f, nil
	}
	size := 0
	for _, c := range rc4Keys {
		if c.name == d.cipher {
			size = c.bytes
		}
	}
	var err, err2 error
	f.encrypt, err = rc4.NewCipher(key(size, "Digest H(A1) to client-to-server sealing key magic constant"))
	f.decrypt, err2 = rc4.NewCipher(key(size, "Digest H(A1) to server-to-client sealing key magic constant"))
	return f, errors.Join(err, err2)
}

var errChallenge = errors.New("malformed challenge")

// directives parses name=value pairs, separated by commas. A value may be quoted. Of several
// values of one name it returns the first, as for realms.
func directives(text string) (map[string]string, error) {
	fields := make(map[string]string)
	for text = strings.TrimLeft(text, ", \t\r\n"); text != ""; text = strings.TrimLeft(text, ", \t\r\n") {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("%w: %q has no value", errChallenge, text)
		}
		value := ""
		if value, text, ok = unquote(rest); !ok {
			return nil, fmt.Errorf("%w: %s has no closing quote", errChallenge, name)
		}
		if name = strings.ToLower(strings.TrimSpace(name)); fields[name] == "" {
			fields[name] = value
		}
	}
	return fields, nil
}

// unquote returns the value at the beginning of text, and the text after it.
func unquote(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		value, rest, _ = strings.Cut(text, ",")
		return strings.TrimSpace(value), rest, true
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
