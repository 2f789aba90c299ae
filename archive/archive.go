// Package archive unpacks zip and tar archives into a directory, as Hadoop's distributed cache does.
//
//	.zip .jar                            zip
//	.tar                                 tar: ustar, PAX and GNU
//	.tgz, .tar.gz, .tar.bz2, .tar.zst …  tar, compressed with a codec of package compression
//
// The suffix of the name decides, in any case. [Check] refuses other names.
//
// # Members
//
// Files, directories, symbolic links, and hard links to earlier members are unpacked. A later member replaces an
// earlier file or link with the same name. All others are refused with [ErrRefused], which names the member:
//
//   - a name that is absolute, leads out of the directory, or is below a link of the archive
//   - a symbolic link that is absolute or leads out, or with ".." after another name: such a link can lead
//     out through other links
//   - a device, FIFO or socket
//   - an encrypted member
//
// # Invariants
//
//	A1  Nothing is written outside the directory. Links are made last, so no member is written through one, and
//	    all files are made below an [os.Root].
//	A2  All entries together have at most [Limits.Entries] files, directories and links, and [Limits.Bytes] bytes,
//	    whatever sizes the archive claims. So has the directory of a zip file, which is kept in memory: a KiB for
//	    each entry of the limit at most.
//	A3  An archive is unpacked completely, or the directory is removed. Checksums are compared. A tar file that
//	    is not compressed must have the blocks of zeros that end it, because nothing else shows that it was cut.
//	A4  Files are read-only, with the archive's permission to execute: several attempts read the same copy.
package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/quernmr/quern/compression"
)

// Limits of an unpacked archive.
type Limits struct {
	Bytes   int64 // of all files
	Entries int   // files, directories and links
}

// DefaultLimits are for archives of any user: much more than libraries and dictionaries need, and less than a disk.
var DefaultLimits = Limits{Bytes: 16 << 30, Entries: 1_000_000}

// ErrRefused reports an archive that this package does not unpack, however often it is read.
var ErrRefused = errors.New("the archive is refused")

const maxName = 4096 // bytes of a member's name or of a link

// Check returns an error if a file with this name is no archive.
func Check(name string) error {
	_, _, err := formatOf(name)
	return err
}

// Suffix returns the end of an archive's name that decides how it is unpacked.
func Suffix(name string) string {
	base := strings.ToLower(path.Base(name))
	suffix := path.Ext(base)
	if path.Ext(strings.TrimSuffix(base, suffix)) == ".tar" {
		return ".tar" + suffix
	}
	return suffix
}

// formatOf returns whether a name is that of a zip file, or else the codec of a tar file; nil: not compressed.
func formatOf(name string) (zip bool, codec *compression.Codec, err error) {
	base := strings.ToLower(path.Base(name))
	switch path.Ext(base) {
	case ".zip", ".jar":
		return true, nil, nil
	case ".tar":
		return false, nil, nil
	case ".tgz":
		codec, err = compression.Named("gzip")
		return false, codec, err
	}
	if codec = compression.OfFile(base); codec != nil && strings.HasSuffix(base, ".tar"+codec.Suffix) {
		return false, codec, nil
	}
	return false, nil, fmt.Errorf("%w: the suffix of %s is none of .zip, .jar, .tar, .tgz, .tar.gz, .tar.bz2 and .tar.zst", ErrRefused, path.Base(name))
}

// Unpack unpacks an archive of size bytes into dir, which must not exist. The suffix of name decides how. If it
// fails, or ctx ends, it removes dir.
func Unpack(ctx context.Context, name string, r io.ReaderAt, size int64, dir string, limits Limits) (err error) {
	zip, codec, err := formatOf(name)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("unpack %s: %w", name, err), os.RemoveAll(dir))
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	t := &target{ctx: ctx, root: root, left: limits, limits: limits, dirs: make(map[string]bool), links: make(map[string]string)}
	if zip {
		err = t.unzip(r, size)
	} else {
		err = t.untar(io.NewSectionReader(r, 0, size), codec)
	}
	if err != nil {
		return err
	}
	return t.makeLinks()
}

// refuse returns an error about a member.
func refuse(member, format string, args ...any) error {
	return fmt.Errorf("%w: member %q %s", ErrRefused, member, fmt.Sprintf(format, args...))
}
