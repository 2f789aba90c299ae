package mapreduce

import "errors"

// saidOnce leaves out of joined errors those that say of a type what an earlier one has said:
// the key that has no encoding is often the result's too.
func saidOnce(err error) error {
	var kept []error
	said := make(map[string]bool)
	var take func(err error)
	take = func(err error) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				take(e)
			}
			return
		}
		root := err
		for inner := errors.Unwrap(root); inner != nil; inner = errors.Unwrap(root) {
			root = inner
		}
		if text := root.Error(); !said[text] {
			said[text] = true
			kept = append(kept, err)
		}
	}
	if err != nil {
		take(err)
	}
	return errors.Join(kept...)
}
