package mapreduce

import "errors"

// saidOnce drops those of joined errors whose cause has the same text as an earlier one's: a
// key type that has no encoding is often the result type too.
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
