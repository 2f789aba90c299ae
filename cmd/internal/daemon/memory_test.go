package daemon

import "testing"

func TestMemoryLimit(t *testing.T) {
	for _, c := range []struct {
		group int64
		own   string
		want  int64
	}{
		{0, "", 0},
		{1000, "", 900},
		{1000, "1GiB", 0},
	} {
		if got := memoryLimit(c.group, c.own); got != c.want {
			t.Errorf("group %d, GOMEMLIMIT %q: %d, want %d", c.group, c.own, got, c.want)
		}
	}
}
