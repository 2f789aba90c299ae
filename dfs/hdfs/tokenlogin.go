package hdfs

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/quernmr/quern/dfs/hdfs/sasl"
)

// tokenVariable names the environment variable with the path of a token file.
const tokenVariable = "HADOOP_TOKEN_FILE_LOCATION"

// tokenLogin is a login by the delegation tokens of a file. It reads the file again after each
// change, so that another process can replace the tokens before they expire.
type tokenLogin struct {
	file string

	mu     sync.Mutex
	tokens []token
	read   os.FileInfo // of the file when tokens was read
}

// find returns the token for one of some services.
func (l *tokenLogin) find(services []string) (token, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := os.Stat(l.file)
	if err != nil && l.read == nil {
		return token{}, fmt.Errorf("%s: %w", tokenVariable, err)
	}
	if err == nil && (l.read == nil || !os.SameFile(info, l.read) || !info.ModTime().Equal(l.read.ModTime())) {
		text, err := readFile(l.file)
		if err == nil {
			var tokens []token
			if tokens, err = readTokens(text); err == nil {
				l.tokens, l.read = tokens, info
			}
		}
		if err != nil && l.read == nil { // else the last tokens are used, as in the middle of a change
			return token{}, fmt.Errorf("%s=%s: %w", tokenVariable, l.file, err)
		}
	}
	for _, t := range l.tokens {
		if t.kind == delegationKind && slices.Contains(services, t.service) {
			return t, nil
		}
	}
	return token{}, fmt.Errorf("%w: %s has none for %s", errNoToken, l.file, strings.Join(services, ", "))
}

// errNoToken reports a NameNode for which a token file has no token.
var errNoToken = errors.New("no delegation token")

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxTokenFile))
}

// tokenServices returns the services of tokens for an authority, as Hadoop names them: the preferred
// one first. A nameservice with several NameNodes has one of its own; another NameNode has its address.
func (c Conf) tokenServices(authority string, addrs []string) []string {
	if len(addrs) > 1 {
		authority, _ = c.named(authority) // addrs come from it
		return []string{"ha-hdfs:" + authority}
	}
	services := []string{addrs[0]}
	host, port, err := net.SplitHostPort(addrs[0])
	if err != nil {
		return services
	}
	ips, err := net.LookupHost(host)
	if err != nil {
		return services
	}
	for _, ip := range ips {
		services = append(services, net.JoinHostPort(ip, port))
	}
	if !strings.EqualFold(c.get("hadoop.security.token.service.use_ip"), "false") {
		services = append(services[1:], services[0])
	}
	return services
}

// byToken does the handshake with a delegation token: DIGEST-MD5 with the token's identifier as the
// user and its password.
func (s *nameSASL) byToken(offer namedAuths, t token, nonce string, demand sasl.Demand) error {
	auth := offer["TOKEN"]
	if auth == nil {
		return fmt.Errorf("%w: the NameNode takes none", errNoToken)
	}
	digest := &sasl.Digest{URI: field(auth, "protocol").String() + "/" + field(auth, "serverId").String(), Nonce: nonce, Demand: demand,
		User: base64.StdEncoding.EncodeToString(t.identifier), Password: base64.StdEncoding.EncodeToString(t.password)}
	response, err := digest.Respond(field(auth, "challenge").Bytes())
	if err != nil {
		return err
	}
	chosen := auth.ProtoReflect()
	chosen.Clear(chosen.Descriptor().Fields().ByName("challenge"))
	if err := s.send(saslInitiate, response, auth); err != nil {
		return err
	}
	final, err := s.receive(saslSuccess)
	if err != nil {
		return err
	}
	if err := digest.Verify(field(final, "token").Bytes()); err != nil {
		return err
	}
	if s.level = digest.Level; s.level == sasl.Authentication {
		return nil
	}
	frames, err := digest.Frames()
	s.sealer, s.room = digestSealer{frames}, digestRoom
	return err
}

// digestRoom is the longest message that is sealed by DIGEST-MD5: servers take 64 KiB by default.
const digestRoom = 32 << 10

// digestSealer seals messages at the level that the handshake has chosen.
type digestSealer struct{ frames *sasl.Frames }

func (d digestSealer) Wrap(message []byte, _ sasl.Level) ([]byte, error) {
	return d.frames.Seal(nil, message), nil
}

func (d digestSealer) Unwrap(token []byte, _ sasl.Level) ([]byte, error) { return d.frames.Open(token) }

// sharedLogin returns a function that logs in once; a failed login is tried again.
func sharedLogin(first func() (login, error)) func() (login, error) {
	var mu sync.Mutex
	var shared login
	return func() (login, error) {
		mu.Lock()
		defer mu.Unlock()
		if shared != nil {
			return shared, nil
		}
		l, err := first()
		if err == nil {
			shared = l
		}
		return l, err
	}
}
