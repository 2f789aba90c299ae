package account

import "runtime"

// Do calls f, which opens files with the rights of the account, not with root's. It calls f on a new goroutine
// and thread, which end with f. Goroutines and processes that f starts have root's rights. A nil account changes nothing.
func (a *Account) Do(f func() error) error {
	if a == nil {
		return f()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread ends with this goroutine
		err := a.User().Enter()
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}
