package wire

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
)

// DigestError reports that a file is not the one that was submitted.
type DigestError struct {
	File      string
	Got, Want []byte // SHA-256
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("%s has SHA-256 %x, but %x was submitted: the file was changed after the submission", e.File, e.Got, e.Want)
}

// StagedDigest returns the digest of a staged file, given its content.
func StagedDigest(content []byte) []byte {
	sum := sha256.Sum256(content)
	return sum[:]
}

// ReadStaged reads a staged submission with a digest; nil: any. The name is for errors. A file with
// another digest gives a [*DigestError].
func ReadStaged(r io.Reader, name string, digest []byte) (*Submission, error) {
	content, err := io.ReadAll(io.LimitReader(r, frameHeader+MaxFrame))
	if err != nil {
		return nil, fmt.Errorf("read submission %s: %w", name, err)
	}
	if got := StagedDigest(content); digest != nil && !bytes.Equal(got, digest) {
		return nil, &DigestError{File: name, Got: got, Want: digest}
	}
	sub, err := ReadAs[*Submission](bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("read submission %s: %w", name, err)
	}
	return sub, nil
}
