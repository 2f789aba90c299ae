package sasl

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/quernmr/quern/internal/membound"
)

// TestChoose: the choice is never below the demand, whatever is offered, and a refusal names
// both.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		demand, offered, want string
	}{
		{"authentication", "authentication", "authentication"},
		{"authentication", "privacy,integrity", "integrity"},
		{"integrity", "authentication,privacy,integrity", "integrity"},
		{"privacy, Integrity", "authentication,integrity", "integrity"},
		{"authentication,privacy", "privacy,authentication", "authentication"},
		{"authentication,privacy", "integrity", "integrity"},
		{"integrity", "authentication", "weaker protection than configured: it offers authentication, p demands integrity"},
		{"privacy", "integrity,authentication", "weaker protection than configured: it offers integrity, authentication, p demands privacy"},
		{"privacy,integrity", "", "weaker protection than configured: it offers nothing, p demands privacy, integrity"},
	} {
		d, err := ParseDemand("p", c.demand)
		if err != nil {
			t.Fatal(err)
		}
		var offered Demand
		if c.offered != "" {
			if offered, err = ParseDemand("p", c.offered); err != nil {
				t.Fatal(err)
			}
		}
		level, err := d.Choose(offered.Levels)
		got := level.String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want || err != nil && !errors.Is(err, ErrWeaker) {
			t.Errorf("%s of %s: %s, want %s", c.demand, c.offered, got, c.want)
		}
	}
	if _, err := ParseDemand("p", "privacy,secret"); err == nil || err.Error() != `p: "secret" is not one of authentication, integrity, privacy` {
		t.Errorf("an unknown level: %v", err)
	}
}

// TestDigestExample: the example in RFC 2831, section 4.
func TestDigestExample(t *testing.T) {
	d := &Digest{User: "chris", Password: "secret", URI: "imap/elwood.innosoft.com", Nonce: "OA6MHXh6VqTrRk", Demand: Demand{"p", []Level{Authentication}}}
	response, err := d.Respond([]byte(`realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8`))
	if err != nil || !strings.Contains(string(response), ",response=d388dad90d4bbd760a152321f2143af7,") {
		t.Errorf("%s, %v", response, err)
	}
	if err := d.Verify([]byte("rspauth=ea40f60335c427b5527b84dbabcdfffd")); err != nil {
		t.Error(err)
	}
	if err := d.Verify([]byte("rspauth=ea40f60335c427b5527b84dbabcdfffe")); err == nil {
		t.Error("a wrong proof was believed")
	}
}

// TestChallenges: a challenge that is not understood is refused.
func TestChallenges(t *testing.T) {
	for challenge, want := range map[string]string{
		`nonce="n",qop="auth",algorithm=md5`: "algorithm",
		`qop="auth",algorithm=md5-sess`:      "no nonce",
		`nonce="n`:                           "no closing quote",
		`nonce`:                              "has no value",
		`nonce="n",qop="auth-int",algorithm=md5-sess`:                       "offers integrity, p demands privacy",
		`nonce="n",algorithm=md5-sess`:                                      "offers authentication, p demands privacy",
		`nonce="n",qop="auth-conf",algorithm=md5-sess,cipher="3des,des"`:    `ciphers "3des,des" `,
		`nonce="a\"b",qop="auth-conf",algorithm=md5-sess,cipher="des,rc4" `: "",
	} {
		d := &Digest{Nonce: "c", Demand: Demand{"p", []Level{Privacy}}}
		response, err := d.Respond([]byte(challenge))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", challenge, err)
		}
		if err == nil && (!strings.Contains(string(response), `nonce="a\"b"`) || !strings.HasSuffix(string(response), ",cipher=rc4")) {
			t.Errorf("%s: %s", challenge, response)
		}
	}
}

// frames returns the frames of both sides of a connection.
func frames(t testing.TB, level Level) (client, server *Frames) {
	t.Helper()
	d := &Digest{User: "u", Password: "p", Nonce: "c", nonce: "n", Level: level, cipher: "rc4"}
	client, err := d.Frames()
	if err != nil {
		t.Fatal(err)
	}
	other, err := d.Frames()
	if err != nil {
		t.Fatal(err)
	}
	return client, &Frames{seal: other.open, open: other.seal, encrypt: other.decrypt, decrypt: other.encrypt}
}

// TestConn: a reader gets what was written whatever the lengths of writes, frames and reads; each
// Read returns the number of bytes that it has copied.
func TestConn(t *testing.T) {
	text := []byte(strings.Repeat("0123456789abcde", 5_000))
	for _, level := range []Level{Integrity, Privacy} {
		for _, piece := range []int{7, 1000, 300_000} {
			for _, read := range []int{1, 3, 512, 1000, 100_000} {
				a, b := net.Pipe()
				mine, theirs := frames(t, level)
				go func() {
					w := theirs.Conn(b)
					for p := range slices.Chunk(text, piece) {
						w.Write(p)
					}
					b.Close()
				}()
				var got []byte
				r, p := mine.Conn(a), make([]byte, read)
				for {
					n, err := r.Read(p)
					got = append(got, p[:n]...)
					if err != nil {
						if err != io.EOF {
							t.Error(err)
						}
						break
					}
				}
				if !bytes.Equal(got, text) {
					t.Errorf("%s, frames of %d, reads of %d: %d of %d bytes", level, piece, read, len(got), len(text))
				}
			}
		}
	}
}

// TestFrames: a changed, repeated, dropped or reordered frame is refused.
func TestFrames(t *testing.T) {
	for _, level := range []Level{Integrity, Privacy} {
		seal := func() ([][]byte, *Frames) {
			mine, theirs := frames(t, level)
			return [][]byte{theirs.Seal(nil, []byte("first")), theirs.Seal(nil, []byte("second"))}, mine
		}
		sent, f := seal()
		if bytes.Contains(sent[0], []byte("first")) != (level == Integrity) {
			t.Errorf("%s: the frame is %q", level, sent[0])
		}
		for i, want := range []string{"first", "second"} {
			if got, err := f.Open(sent[i]); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", level, got, err)
			}
		}
		for at := range sent[0] {
			sent, f := seal()
			sent[0][at] ^= 4
			if _, err := f.Open(sent[0]); err == nil {
				t.Errorf("%s: byte %d may be changed", level, at)
			}
		}
		sent, f = seal()
		if _, err := f.Open(sent[1]); err == nil {
			t.Errorf("%s: the first frame may be dropped", level)
		}
		sent, f = seal()
		again := bytes.Clone(sent[0])
		f.Open(sent[0])
		if _, err := f.Open(again); err == nil {
			t.Errorf("%s: a frame may be repeated", level)
		}
		if _, err := f.Open([]byte("short")); err == nil {
			t.Errorf("%s: a short frame is accepted", level)
		}
	}
}

func contexts(t testing.TB, kind int32, size int) (client, server *GSS) {
	t.Helper()
	key := types.EncryptionKey{KeyType: kind, KeyValue: bytes.Repeat([]byte{7}, size)}
	client, err := NewGSS(key, 41, false)
	if err != nil {
		t.Fatal(err)
	}
	server, err = NewGSS(key, 41, true)
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// TestGSS: a token is opened by the other side alone, once, in its order and unchanged, at the
// level or above it.
func TestGSS(t *testing.T) {
	for kind, size := range map[int32]int{etypeID.AES128_CTS_HMAC_SHA1_96: 16, etypeID.AES256_CTS_HMAC_SHA1_96: 32} {
		for _, level := range []Level{Integrity, Privacy} {
			client, server := contexts(t, kind, size)
			first, err := client.Wrap([]byte("message"), level)
			if err != nil {
				t.Fatal(err)
			}
			second, err := client.Wrap([]byte("message"), level)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(first, []byte("message")) != (level == Integrity) {
				t.Errorf("%s: the token is %q", level, first)
			}
			if _, err := client.Unwrap(first, level); err == nil {
				t.Errorf("%s: a side takes its own token", level)
			}
			if _, err := server.Unwrap(second, level); err == nil {
				t.Errorf("%s: the first token may be dropped", level)
			}
			if level == Integrity {
				if _, err := server.Unwrap(first, Privacy); err == nil {
					t.Error("a token that is only signed passes at privacy")
				}
			}
			for at := range first {
				if at >= 6 && at < 8 {
					continue // the rotation is not signed
				}
				changed := bytes.Clone(first)
				changed[at] ^= 4
				if _, err := server.Unwrap(changed, level); err == nil {
					t.Errorf("%s: byte %d may be changed", level, at)
				}
			}
			for n := range first {
				if _, err := server.Unwrap(first[:n], level); err == nil {
					t.Errorf("%s: %d of %d bytes are enough", level, n, len(first))
				}
			}
			rotated := bytes.Clone(first)
			rotated[7] = 5
			body := rotated[gssHeader:]
			copy(body, append(bytes.Clone(body[len(body)-5:]), body[:len(body)-5]...))
			if got, err := server.Unwrap(rotated, level); err != nil || string(got) != "message" {
				t.Errorf("%s, rotated: %q, %v", level, got, err)
			}
			if _, err := server.Unwrap(first, level); err == nil {
				t.Errorf("%s: a token may be repeated", level)
			}
			if got, err := server.Unwrap(second, level); err != nil || string(got) != "message" {
				t.Errorf("%s: %q, %v", level, got, err)
			}
		}
	}
	if _, err := NewGSS(types.EncryptionKey{KeyType: etypeID.RC4_HMAC, KeyValue: make([]byte, 16)}, 0, false); !errors.Is(err, ErrUnsupported) {
		t.Errorf("an RC4 key: %v", err)
	}
}

// TestGSSOracle: gokrb5 reads our signed tokens, and we read its.
func TestGSSOracle(t *testing.T) {
	client, server := contexts(t, etypeID.AES256_CTS_HMAC_SHA1_96, 32)
	key := types.EncryptionKey{KeyType: etypeID.AES256_CTS_HMAC_SHA1_96, KeyValue: client.key}
	text, err := client.Wrap([]byte("from the client"), Integrity)
	if err != nil {
		t.Fatal(err)
	}
	var token gssapi.WrapToken
	if err := token.Unmarshal(text, false); err != nil {
		t.Fatal(err)
	}
	if ok, err := token.Verify(key, keyusage.GSSAPI_INITIATOR_SEAL); !ok || err != nil || string(token.Payload) != "from the client" || token.SndSeqNum != 41 {
		t.Errorf("%v, %v: %+v", ok, err, token)
	}
	theirs, err := gssapi.NewInitiatorWrapToken([]byte("from gokrb5"), key)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = theirs.Marshal(); err != nil {
		t.Fatal(err)
	}
	server.received = theirs.SndSeqNum
	if got, err := server.Unwrap(text, Integrity); err != nil || string(got) != "from gokrb5" {
		t.Errorf("%q, %v", got, err)
	}
}

// BenchmarkConn writes and reads megabytes, on one goroutine.
func BenchmarkConn(b *testing.B) {
	keys := AES{InKey: make([]byte, 16), InIV: make([]byte, 16), OutKey: make([]byte, 16), OutIV: make([]byte, 16)}
	for name, connect := range map[string]func(raw net.Conn, server bool) net.Conn{
		"integrity":    func(raw net.Conn, server bool) net.Conn { return side(b, Integrity, server).Conn(raw) },
		"privacy, RC4": func(raw net.Conn, server bool) net.Conn { return side(b, Privacy, server).Conn(raw) },
		"privacy, AES": func(raw net.Conn, _ bool) net.Conn { c, _ := keys.Conn(raw); return c },
	} {
		b.Run(name, func(b *testing.B) {
			wire := &buffered{}
			w, r := connect(wire, true), connect(wire, false)
			data := make([]byte, 1<<20)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				w.Write(data)
				if _, err := io.ReadFull(r, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func side(t testing.TB, level Level, server bool) *Frames {
	client, other := frames(t, level)
	if server {
		return other
	}
	return client
}

// buffered is a connection to itself.
type buffered struct {
	net.Conn
	bytes.Buffer
}

func (b *buffered) Read(p []byte) (int, error)  { return b.Buffer.Read(p) }
func (b *buffered) Write(p []byte) (int, error) { return b.Buffer.Write(p) }

// FuzzServer checks that no challenge, frame or token of a server ends the process.
func FuzzServer(f *testing.F) {
	f.Add([]byte(`realm="r",nonce="n",qop="auth-conf",algorithm=md5-sess,cipher="rc4"`))
	client, server := contexts(f, etypeID.AES128_CTS_HMAC_SHA1_96, 16)
	for _, level := range []Level{Integrity, Privacy} {
		token, err := server.Wrap([]byte("message"), level)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		d := &Digest{Nonce: "c", Demand: Demand{"p", []Level{Privacy}}}
		membound.Bound{Free: 1 << 20, PerByte: 64}.Check(t, len(sent), func() { d.Respond(sent) }) // any result is fine
		if response, err := d.Respond(sent); len(response) > 3*len(sent)+1000 {
			t.Errorf("%d bytes became %d, %v", len(sent), len(response), err)
		}
		mine, _ := frames(t, Privacy)
		if got, err := mine.Open(bytes.Clone(sent)); err == nil {
			t.Errorf("a forged frame: %q", got)
		}
		for _, level := range []Level{Integrity, Privacy} {
			context := *client
			if got, err := context.Unwrap(sent, level); err == nil && string(got) != "message" {
				t.Errorf("a forged token: %q", got)
			}
		}
	})
}
