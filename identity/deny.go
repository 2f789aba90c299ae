package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// DeniedFile is the deny list in the directory of a daemon or client. It may be missing. Each line
// denies a name or a certificate:
//
//	# comment
//	client alice
//	tasktracker tt7
//	serial 5F0C96…
//
// A serial number is hexadecimal, as openssl prints it, also with colons.
//
// A list may be read while it is written. So an empty list is refused, and one that does not end with a newline.
// Names and numbers that a list no longer has stay denied until it has not changed for settleTime, by the time of
// the file or by the clock of this process.
const DeniedFile = "denied"

const (
	maxDenied  = 1 << 20 // bytes
	settleTime = 3 * time.Second
)

// denyList is a deny list that was read.
type denyList struct {
	peers   map[Peer]bool
	serials map[string]bool // as serialText returns them
	stamp   stamp           // of the file; zero: there is none
	since   time.Time       // when this stamp was first seen
	settles bool            // it has entries of older lists, too
	err     string          // last logged error
}

// add adds the entries of another list. It reports whether one of them is new.
func (d *denyList) add(other *denyList) (isNew bool) {
	before := len(d.peers) + len(d.serials)
	maps.Copy(d.peers, other.peers)
	maps.Copy(d.serials, other.serials)
	return len(d.peers)+len(d.serials) > before
}

func (d *denyList) equal(other *denyList) bool {
	return maps.Equal(d.peers, other.peers) && maps.Equal(d.serials, other.serials)
}

// denies returns an error if the list has a peer or its certificate.
func (d *denyList) denies(p Peer, serial *big.Int) error {
	switch {
	case d.peers[p]:
		return fmt.Errorf("%w: %v is in the deny list", ErrNotAdmitted, p)
	case d.serials[serialText(serial)]:
		return fmt.Errorf("%w: the certificate of %v with serial number %s is in the deny list", ErrNotAdmitted, p, serialText(serial))
	}
	return nil
}

// readDenied reads a deny list if it has changed since the last one was read, or if that must have settled.
func readDenied(dir string, last denyList, now time.Time) (list denyList, err error) {
	name := filepath.Join(dir, DeniedFile)
	var found stamp
	info, err := os.Stat(name)
	switch {
	case err == nil:
		found = stamp{info.ModTime(), info.Size()}
	case !errors.Is(err, fs.ErrNotExist):
		return last, err
	default: // it may be about to be replaced
		if info, err = os.Stat(dir); err != nil {
			return last, err
		}
	}
	settled := now.Sub(info.ModTime()) >= settleTime || found == last.stamp && now.Sub(last.since) >= settleTime
	if found == last.stamp && !(last.settles && settled) {
		return last, nil
	}
	list = newDenyList()
	if found != (stamp{}) {
		if list, err = readDenyFile(name, found.size); err != nil {
			return last, err
		}
	}
	list.stamp, list.since = found, now
	if !settled {
		list.settles = list.add(&last)
	}
	return list, nil
}

func readDenyFile(name string, size int64) (denyList, error) {
	if size > maxDenied {
		return denyList{}, fmt.Errorf("%s has %d bytes, at most %d are allowed", name, size, maxDenied)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return denyList{}, err
	}
	list, err := parseDenied(string(text))
	if err != nil {
		return denyList{}, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

func newDenyList() denyList {
	return denyList{peers: make(map[Peer]bool), serials: make(map[string]bool)}
}

func parseDenied(text string) (denyList, error) {
	list := newDenyList()
	if text == "" {
		return list, errors.New("it is empty, as while it is written: to deny nothing, remove the file or write a comment into it")
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if !strings.HasSuffix(line, "\n") {
			return list, fmt.Errorf("line %d has no newline at its end: the list may be incomplete", n)
		}
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := list.parse(words); err != nil {
			return list, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return list, nil
}

func (d *denyList) parse(words []string) error {
	if len(words) != 2 {
		return fmt.Errorf("%d words, want a role and a name, or serial and a number", len(words))
	}
	if words[0] == "serial" {
		serial, ok := new(big.Int).SetString(strings.ReplaceAll(words[1], ":", ""), 16)
		if !ok || serial.Sign() <= 0 {
			return fmt.Errorf("serial number %q: want hexadecimal digits", words[1])
		}
		d.serials[serialText(serial)] = true
		return nil
	}
	p := Peer{Role(words[0]), words[1]}
	if !p.Role.known() {
		return fmt.Errorf("%q: want %s, %s, %s or serial", words[0], JobTracker, TaskTracker, Client)
	}
	d.peers[p] = true
	return CheckName(p.Name)
}

// firstDenied reads the deny list at the start.
func (id *Identity) firstDenied() (err error) {
	if id.self.Role == "" {
		id.denied, err = readDenied(id.dir, newDenyList(), id.now())
	}
	return err
}

// refreshDenied reads the deny list again if it has changed. If it is broken, the old one stays in
// use, and the error is logged once. The caller holds mu.
func (id *Identity) refreshDenied() {
	list, err := readDenied(id.dir, id.denied, id.now())
	switch {
	case err == nil:
		changed := !list.equal(&id.denied)
		id.denied = list
		id.denied.err = ""
		if changed {
			id.trustChanged = time.Now()
			id.log.Info("new deny list", "directory", id.dir, "names", len(list.peers), "serials", len(list.serials))
		}
	case id.denied.err != err.Error():
		id.denied.err = err.Error()
		id.log.Error("the deny list cannot be used, the old one stays", "error", err)
	}
}

// denies returns an error if the deny list has a peer or its certificate.
func (id *Identity) denies(p Peer, serial *big.Int) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.denied.denies(p, serial)
}
