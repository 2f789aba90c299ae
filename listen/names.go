package listen

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// NameFlag is the flag of daemons that sets further names.
const NameFlag = "-additional-dnsname"

// Names are the names under which clients may reach a server, in addition to localhost and IP
// addresses. Each is a host, or a host and port. The port has no effect.
type Names []string

// Check returns an error if a request is for another host.
func (n Names) Check(r *http.Request) error {
	host := hostOf(r.Host)
	if host == "localhost" || isAddress(host) {
		return nil
	}
	if host != "" && slices.ContainsFunc(n, func(name string) bool { return hostOf(name) == host }) {
		return nil
	}
	return &HostError{r.Host}
}

// Handler passes requests on to h. It has requests for another host answered by refuse.
func (n Names) Handler(h http.Handler, refuse func(w http.ResponseWriter, r *http.Request, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := n.Check(r); err != nil {
			refuse(w, r, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// HostError reports that a request is for a host that is none of the server's names.
type HostError struct{ Host string }

func (e *HostError) Error() string {
	host := strings.ToValidUTF8(e.Host[:min(len(e.Host), 300)], "?")
	return fmt.Sprintf("the request is for host %q, which is no name of this server: use its address or its advertised name, or start the server with %s and this name", host, NameFlag)
}

// hostOf returns the host of HOST or HOST:PORT, in lower case.
func hostOf(addr string) string {
	host := addr
	if h, _, err := net.SplitHostPort(addr); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// CheckName returns an error if a name for [Names] is no host name.
func CheckName(name string) error {
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notInLabel) {
			return fmt.Errorf("%q is not a host name without a port", name)
		}
	}
	return nil
}

func notInLabel(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
}
