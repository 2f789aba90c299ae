package locality

import (
	"errors"
	"fmt"
	"strings"
)

// DefaultRack is the rack of machines without a configured one, as in HDFS.
const DefaultRack = "/default-rack"

// ErrBadRack reports a rack that is not a path.
var ErrBadRack = errors.New("a rack is a path, like /dc1/r7")

// CheckRack validates a rack given by a user; empty means none.
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

// HostKey normalizes names of machines for comparison: case and a final dot do not count.
func HostKey(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// Topology has the racks of machines that the file system reports. A machine's newest rack
// replaces older ones. The zero value is empty.
type Topology struct{ racks map[string]string }

// Learn stores a machine's rack and reports whether it is new. It ignores an empty rack.
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

// Rack returns a machine's rack: the learned rack, else the machine's own setting, else
// [DefaultRack].
func (t *Topology) Rack(host, own string) string {
	if rack := t.racks[HostKey(host)]; rack != "" {
		return rack
	}
	if own != "" {
		return own
	}
	return DefaultRack
}

// Conflict describes a difference between a machine's own rack and the file system's; empty if
// there is none.
func (t *Topology) Conflict(host, own string) string {
	rack := t.racks[HostKey(host)]
	if own == "" || rack == "" || rack == own {
		return ""
	}
	return fmt.Sprintf("-rack says %s, but the file system says %s, which is used", own, rack)
}
