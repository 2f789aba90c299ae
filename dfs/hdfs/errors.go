package hdfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	client "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs/sasl"
)

// callResult classifies a failed call to a NameNode.
type callResult int

const (
	final       callResult = iota // the NameNode has responded: retrying does not help
	retryLater                    // retry: standby, safe mode, overload
	noResponse                    // retry: no response, so the call may have had its effect
	unreachable                   // no NameNode can be reached: retrying does not help
)

// nameNodeError is an error response of a NameNode.
type nameNodeError struct {
	exception string
	text      string // first line
	sentinel  error  // the matching io/fs or syscall error, or nil
}

func (r *nameNodeError) Error() string {
	if r.sentinel != nil && r.sentinel != syscall.ENOSPC && !errors.Is(r.sentinel, fs.ErrPermission) && r.sentinel != errSafeMode {
		return r.sentinel.Error()
	}
	if r.sentinel != nil {
		return r.sentinel.Error() + ": " + strings.TrimPrefix(r.text, "Permission denied: ")
	}
	return r.text + " (" + r.exception[strings.LastIndexByte(r.exception, '.')+1:] + ")"
}

// Answer returns the NameNode's own text, as Hadoop's programs print it.
func (r *nameNodeError) Answer() string { return r.text }

func (r *nameNodeError) Unwrap() error { return r.sentinel }

var errSafeMode = errors.New("the NameNode is in safe mode")

// sentinels has the matching error of each exception, by name without package.
var sentinels = map[string]error{
	"FileNotFoundException":                 fs.ErrNotExist,
	"FileAlreadyExistsException":            fs.ErrExist,
	"AlreadyBeingCreatedException":          fs.ErrExist,
	"AccessControlException":                fs.ErrPermission,
	"AuthorizationException":                fs.ErrPermission, // the service, or acting as another user from this address
	"PathIsNotEmptyDirectoryException":      syscall.ENOTEMPTY,
	"ParentNotDirectoryException":           syscall.ENOTDIR,
	"PathIsDirectoryException":              syscall.EISDIR,
	"InvalidPathException":                  fs.ErrInvalid,
	"HadoopIllegalArgumentException":        fs.ErrInvalid,
	"NSQuotaExceededException":              syscall.EDQUOT,
	"DSQuotaExceededException":              syscall.EDQUOT,
	"SafeModeException":                     errSafeMode,
	"UnknownCryptoProtocolVersionException": fmt.Errorf("encrypted files: %w", ErrUnsupported),
}

// classify classifies an error of the library and converts it to this package's form.
// connErr is the connection's last error, because the library keeps only its text.
func classify(err, connErr error) (callResult, error) {
	if answer, ok := remoteError(err); ok {
		return classifyResponse(answer)
	}
	for _, answer := range []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, syscall.ENOTEMPTY} {
		if errors.Is(err, answer) {
			return final, answer
		}
	}
	if connErr != nil {
		err = connErr
	}
	if errors.Is(err, errNameservice) || errors.Is(err, errNotNameNode) || errors.Is(err, ErrUnsupported) ||
		errors.Is(err, errNoLogin) || errors.Is(err, errNoToken) || errors.Is(err, sasl.ErrWeaker) {
		return unreachable, err
	}
	if errors.Is(err, fs.ErrPermission) {
		return unreachable, err
	}
	return noResponse, err
}

// remoteError finds a NameNode's error response in an error.
func remoteError(err error) (client.Error, bool) {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	answer, ok := err.(client.Error)
	return answer, ok
}

func classifyResponse(answer client.Error) (callResult, error) {
	text, _, _ := strings.Cut(answer.Message(), "\n")
	r := &nameNodeError{exception: answer.Exception(), text: strings.TrimSpace(text)}
	name := r.exception[strings.LastIndexAny(r.exception, ".$")+1:]
	r.sentinel = sentinels[name]
	switch {
	case name == "RetriableException" && strings.Contains(text, "SafeModeException"):
		r.sentinel = errSafeMode
		return retryLater, r
	case name == "SafeModeException", name == "RetriableException", name == "StandbyException":
		return retryLater, r
	case name == "IOException" && strings.Contains(text, "could only be written to"):
		r.sentinel = syscall.ENOSPC
	case name == "IOException" && strings.Contains(text, "must both be"): // a rename to a target of another kind
		r.sentinel = fs.ErrExist
	case name == "AccessControlException" && strings.HasSuffix(text, "(is not a directory)"): // for all users except the superuser
		r.sentinel = syscall.ENOTDIR
	case name == "AuthorizationException" && strings.Contains(text, "is not allowed to impersonate"): // else the address may not
		r.sentinel = dfs.ErrActAs
	case name == "NotReplicatedYetException":
		return retryLater, r
	}
	return final, r
}

// failure wraps an error with the operation and the whole URL.
func failure(op, name string, err error, to ...string) error {
	if err == nil {
		return nil
	}
	if len(to) > 0 {
		return &os.LinkError{Op: op, Old: name, New: to[0], Err: err}
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
