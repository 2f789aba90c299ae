package identity

import (
	"errors"
	"fmt"
	"io/fs"
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
const DeniedFile = "denied"

// maxDenied limits the bytes of a deny list.
const maxDenied = 1 << 20

// denyList is a deny list that was read.
type denyList struct {
	peers   map[Peer]bool
	serials map[string]bool // as serialText returns them
	stamp   stamp           // zero: there is no file
	err     string          // last logged error
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

// readDenied reads a deny list if it differs from the last one that was read.
func readDenied(dir string, last denyList) (list denyList, changed bool, err error) {
	name := filepath.Join(dir, DeniedFile)
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return denyList{}, last.stamp != stamp{}, nil
	}
	if err != nil {
		return last, false, err
	}
	now := stamp{info.ModTime(), info.Size()}
	if now == last.stamp {
		return last, false, nil
	}
	if now.size > maxDenied {
		return last, false, fmt.Errorf("%s has %d bytes, at most %d are allowed", name, now.size, maxDenied)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return last, false, err
	}
	list, err = parseDenied(string(text))
	if err != nil {
		return last, false, fmt.Errorf("%s: %w", name, err)
	}
	list.stamp = now
	return list, true, nil
}

func parseDenied(text string) (denyList, error) {
	list := denyList{peers: make(map[Peer]bool), serials: make(map[string]bool)}
	n := 0
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := list.add(words); err != nil {
			return list, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return list, nil
}

func (d *denyList) add(words []string) error {
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
		id.denied, _, err = readDenied(id.dir, denyList{})
	}
	return err
}

// refreshDenied reads the deny list again if it has changed. If it is broken, the old one stays in
// use, and the error is logged once. The caller holds mu.
func (id *Identity) refreshDenied() {
	list, changed, err := readDenied(id.dir, id.denied)
	switch {
	case err == nil && changed:
		id.denied, id.trustChanged = list, time.Now()
		id.log.Info("new deny list", "directory", id.dir, "names", len(list.peers), "serials", len(list.serials))
	case err == nil:
		id.denied.err = ""
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
