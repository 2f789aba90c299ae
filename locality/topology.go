package locality

import (
	"errors"
	"fmt"
	"strings"
)

// DefaultRack is where everything stands of which nobody tells a rack, as in HDFS.
const DefaultRack = "/default-rack"

// ErrBadRack reports a rack that is no path.
var ErrBadRack = errors.New("a rack is a path, like /dc1/r7")

// CheckRack checks a rack that somebody has typed; empty is none.
func CheckRack(rack string) error {
	if rack == "" {
		return nil
	}
	elements, ok := strings.CutPrefix(rack, "/")
	for element := range strings.SplitSeq(elements, "/") {
		ok = ok && element != ""
	}
	if !ok || strings.ContainsAny(rack, " \t\r\n") || len(rack) > 255 {
		return fmt.Errorf("%q: %w", rack, ErrBadRack)
	}
	return nil
}

// HostKey is the form in which names of machines are compared: names differ
// neither in case nor by a dot at the end.
func HostKey(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// Topology is the racks of machines as the file system knows them. What it says
// last of a machine holds. The zero value knows nothing.
type Topology struct{ racks map[string]string }

// Learn takes a machine's rack in and says whether that is new. An empty rack is
// no news.
func (t *Topology) Learn(host, rack string) bool {
	host = HostKey(host)
	if rack == "" || t.racks[host] == rack {
		return false
	}
	if t.racks == nil {
		t.racks = make(map[string]string)
	}
	t.racks[host] = rack
	return true
}

// Rack is where a machine stands: by what was learned, else where it says itself,
// else in [DefaultRack].
func (t *Topology) Rack(host, told string) string {
	if rack := t.racks[HostKey(host)]; rack != "" {
		return rack
	}
	if told != "" {
		return told
	}
	return DefaultRack
}

// Conflict says in words that a machine itself names another rack than the file
// system; empty: it does not.
func (t *Topology) Conflict(host, told string) string {
	rack := t.racks[HostKey(host)]
	if told == "" || rack == "" || rack == told {
		return ""
	}
	return fmt.Sprintf("-rack says %s, the file system %s, which holds", told, rack)
}
