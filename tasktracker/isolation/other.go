//go:build !linux

package isolation

import (
	"errors"
	"os"
	"os/exec"

	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/isolation/enter"
)

var errNotLinux = errors.New("only Linux has namespaces")

// Probe returns an error.
func (c *Config) Probe(string, *account.Account) error { return errNotLinux }

// Pipe returns an error.
func Pipe(*enter.Plan) (*os.File, error) { return nil, errNotLinux }

// Command is never called, because Probe returns an error.
func Command(*exec.Cmd, *os.File, bool) {}
