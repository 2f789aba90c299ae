// Package setting reads properties of jobs, for formats.
package setting

import (
	"fmt"
	"strconv"
)

// Number returns a property that is a whole number; 0, which means the default, if it is not set.
func Number(property func(name string) string, name string) (int64, error) {
	text := property(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("property %s=%.80q is not a whole number of 64 bits", name, text)
	}
	return n, nil
}
