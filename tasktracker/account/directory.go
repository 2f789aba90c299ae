package account

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"
)

// Start starts a process, and returns a function to call after its Wait.
type Start = func(*exec.Cmd) (ended func(), err error)

const (
	askTimeout = 10 * time.Second // LDAP may not answer
	maxAnswer  = 64 << 10
	unknown    = 2 // exit code of getent if it finds nothing
)

// ask looks an account up in all directories that the system uses, such as LDAP, by the programs getent and id: programs
// without cgo know only /etc/passwd. Its errors are those of user.Lookup, or say what the programs answer.
func (u *Users) ask(name string) (*Account, error) {
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, ":\n\x00") {
		return nil, user.UnknownUserError(name)
	}
	line, code, err := u.answer("getent", "passwd", name)
	if errors.Is(err, exec.ErrNotFound) || code == unknown {
		return nil, user.UnknownUserError(name)
	}
	if err != nil {
		return nil, err
	}
	a, err := parsePasswd(name, line)
	if err != nil {
		return nil, fmt.Errorf("getent passwd %s: %w", name, err)
	}
	groups, _, err := u.answer("id", "-G", name)
	if err != nil {
		return nil, err
	}
	for text := range strings.FieldsSeq(groups) {
		g, err := number(text)
		if err != nil {
			return nil, fmt.Errorf("id -G %s: %w", name, err)
		}
		a.Groups = append(a.Groups, g)
	}
	return a, nil
}

// parsePasswd parses a line of the format of /etc/passwd. The answer may be for another account, as getent also takes numbers
// and other forms of a name.
func parsePasswd(name, line string) (*Account, error) {
	fields := strings.Split(strings.TrimSuffix(line, "\n"), ":")
	if len(fields) != 7 || strings.Contains(line[:len(line)-1], "\n") {
		return nil, fmt.Errorf("the answer is not one line of an account: %.100q", line)
	}
	if fields[0] != name {
		return nil, fmt.Errorf("the answer is for account %.100q: give the owner a line OWNER ACCOUNT in -user-map", fields[0])
	}
	a := &Account{Name: name}
	var errUID, errGID error
	a.UID, errUID = number(fields[2])
	a.GID, errGID = number(fields[3])
	if filepath.IsAbs(fields[5]) {
		a.Home = filepath.Clean(fields[5])
	}
	return a, errors.Join(errUID, errGID)
}

// answer returns the output of a program and its exit code.
func (u *Users) answer(program string, args ...string) (text string, code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	out := limited{kill: cancel}
	cmd.Stdout = &out
	start := u.Start
	if start == nil {
		start = func(cmd *exec.Cmd) (func(), error) { return func() {}, cmd.Start() }
	}
	ended, err := start(cmd)
	if err == nil {
		err = cmd.Wait()
		ended()
	}
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case len(out.text) > maxAnswer:
		err = fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	case ctx.Err() != nil:
		err = fmt.Errorf("it did not answer within %v", askTimeout)
	case failed:
		code = exit.ExitCode()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(append([]string{program}, args...), " "), err)
	}
	return string(out.text), code, err
}

// limited keeps the first bytes of an output, and kills a program that writes more.
type limited struct {
	text []byte
	kill func()
}

func (l *limited) Write(p []byte) (int, error) {
	if l.text = append(l.text, p[:min(len(p), maxAnswer+1-len(l.text))]...); len(l.text) > maxAnswer {
		l.kill()
	}
	return len(p), nil
}
