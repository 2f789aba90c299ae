package client

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// Upload copies an executable to a cluster's staging directory, and sets the path and hash of
// program; see [UploadFile].
func Upload(files dfs.FS, staging string, today time.Time, exe string, program *wire.Program) error {
	name, hash, err := UploadFile(files, staging, today, exe, "")
	if err != nil {
		return fmt.Errorf("upload program: %w", err)
	}
	program.Path, program.Hash = name, hash
	return nil
}

// UploadFile copies a file to a cluster's staging directory, and returns its URL and hash. The URL
// has the UTC day on the cluster's clock, the hash and the suffix. So a file is uploaded at most
// once a day, and the cluster can remove old files. A rename makes the complete file visible.
func UploadFile(files dfs.FS, staging string, today time.Time, path, suffix string) (url, hash string, err error) {
	files = dfs.Private(files)
	hash, size, err := userDigests().hash(path)
	if err != nil {
		return "", "", err
	}
	dir := dfs.Join(staging, wire.StagingPrograms, today.UTC().Format("20060102"))
	url = dfs.Join(dir, hash+suffix)
	switch info, err := files.Stat(url); {
	case err == nil && info.Size == size:
	case err == nil: // no client wrote it, since clients rename only complete files
		return "", "", fmt.Errorf("%s has %d bytes, not %d: remove it", url, info.Size, size)
	case errors.Is(err, fs.ErrNotExist):
		if err := upload(files, dir, url, path, hash); err != nil {
			return "", "", err
		}
	default:
		return "", "", err
	}
	return url, hash, nil
}

func upload(files dfs.FS, dir, name, exe, hash string) error {
	in, err := os.Open(exe)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := files.MkdirAll(dir); err != nil {
		return err
	}
	temporary := dfs.Join(dir, ".making-"+rand.Text())
	w, err := files.Create(temporary)
	if err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, h), in); err != nil {
		return errors.Join(err, w.Abort(), removeTemporary(files, temporary))
	}
	if err := w.Close(); err != nil {
		return errors.Join(err, removeTemporary(files, temporary))
	}
	if hex.EncodeToString(h.Sum(nil)) != hash {
		return errors.Join(fmt.Errorf("%s changed during the upload", exe), removeTemporary(files, temporary))
	}
	err = files.RenameFile(temporary, name)
	if err != nil {
		err = errors.Join(err, removeTemporary(files, temporary))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) { // otherwise another client has uploaded it first
		return err
	}
	return files.SyncDir(dir)
}

// removeTemporary removes a file that may not exist.
func removeTemporary(files dfs.FS, name string) error {
	if err := files.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
