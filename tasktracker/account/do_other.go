//go:build !linux

package account

import "errors"

// Do calls f. Only Linux lets a thread use the rights of an account.
func (a *Account) Do(f func() error) error {
	if a == nil {
		return f()
	}
	return errors.New("only Linux lets a thread use the rights of another user")
}
