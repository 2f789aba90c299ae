package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// knownDigests is a file with the SHA-256 of programs that this user has submitted, so that a program of 30 MB is not read
// and hashed again for each job. It has a line for each program, the last one first:
//
//	<sha-256> <device> <inode> <size> <time of the last write> <time of the last change>
//
// Times are in nanoseconds. A program counts as the same if all of them are, as for Git. The system sets the time of
// the last change, which no program can. A file that changed in the last settleTime is not recorded: it may change once
// more within the resolution of the times.
//
// The file only saves time: if it cannot be read or written, programs are hashed. A wrong line cannot run a wrong program
// unnoticed, except one that was uploaded under that hash: an upload and task trackers hash what they copy.
type knownDigests struct {
	name   string
	settle time.Duration // settleTime
}

const (
	settleTime = 2 * time.Second
	maxDigests = 64 // lines
)

// userDigests returns the file of this user, or one without a name, which records nothing.
func userDigests() knownDigests {
	dir, err := os.UserCacheDir()
	if err != nil {
		return knownDigests{}
	}
	return knownDigests{filepath.Join(dir, "quern", "digests"), settleTime}
}

// hash returns the SHA-256 and the size of a file.
func (k knownDigests) hash(path string) (hash string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	began := time.Now()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	identity, changed := identify(info)
	if hash := k.find(identity); hash != "" {
		return hash, info.Size(), nil
	}
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	hash = hex.EncodeToString(h.Sum(nil))
	if size == info.Size() && began.Sub(changed) > k.settle {
		k.record(hash, identity)
	}
	return hash, size, nil
}

// lines returns the well-formed lines.
func (k knownDigests) lines() (lines []string) {
	if k.name == "" {
		return nil
	}
	data, err := os.ReadFile(k.name)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		hash, _, ok := strings.Cut(line, " ")
		if sum, err := hex.DecodeString(hash); ok && err == nil && len(sum) == sha256.Size && strings.HasSuffix(line, "\n") {
			lines = append(lines, line)
		}
	}
	return lines
}

// find returns the hash of a file, or "".
func (k knownDigests) find(identity string) string {
	for _, line := range k.lines() {
		if hash, of, _ := strings.Cut(line, " "); identity != "" && of == identity+"\n" {
			return hash
		}
	}
	return ""
}

// record adds a line. Others may record at the same time: then one of the lines is lost.
func (k knownDigests) record(hash, identity string) {
	if k.name == "" || identity == "" {
		return
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s %s\n", hash, identity)
	lines := k.lines()
	for _, line := range lines[:min(len(lines), maxDigests-1)] {
		text.WriteString(line)
	}
	if os.MkdirAll(filepath.Dir(k.name), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(k.name), "digests-") // of mode 600
	if err != nil {
		return
	}
	_, err = f.Write(text.Bytes())
	if closed := f.Close(); err != nil || closed != nil || os.Rename(f.Name(), k.name) != nil {
		os.Remove(f.Name())
	}
}
