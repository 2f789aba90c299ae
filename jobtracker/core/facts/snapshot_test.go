package facts

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/wire"
)

// TestSnapshotVersions checks that snapshots of older builds load. A snapshot of a newer build is
// refused if this build would lose a part of it.
func TestSnapshotVersions(t *testing.T) {
	current, err := begin(t).facts.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	older := slices.Clone(current)
	older[0] = 1
	for what, data := range map[string][]byte{"this version": current, "version 1": older} {
		f, err := Restore(data)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if again, err := f.Snapshot(); err != nil || !slices.Equal(again, current) {
			t.Errorf("%s: comes back as other bytes: %v", what, err)
		}
	}
	type later struct {
		factsSnapshot `msgpack:",inline"`
		Later         int
	}
	body, err := wire.Marshal(&later{Later: 1})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		data    []byte
		refused bool
	}{
		"nothing":                         {nil, true},
		"a later version":                 {[]byte{3, 0x80}, true},
		"an unknown field":                {append([]byte{2}, body...), true},
		"an unknown field of version 1":   {append([]byte{1}, body...), false},
		"a snapshot that has nothing yet": {[]byte{2, 0x80}, false},
	} {
		if _, err := Restore(c.data); c.refused != errors.Is(err, ErrUnknownFact) || !c.refused && err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestManyJobsRestore: a snapshot with the smallest jobs possible stays within the limit of memory for
// its bytes.
func TestManyJobsRestore(t *testing.T) {
	const submissions, jobs = 200, 100
	f := New()
	index := uint64(0)
	apply := func(x Fact) {
		t.Helper()
		if index++; !f.Apply(index, 1, x) {
			t.Fatalf("%s does not fit", x.Name())
		}
	}
	apply(&Bootstrapped{Start: 1})
	apply(&LeaderElected{Leader: "a"})
	for i := range submissions {
		apply(&Submitted{Submission: wire.Submission{Key: fmt.Sprint(i), Staging: fmt.Sprint("mem://s/", i), Plan: wire.Plan{Jobs: make([]wire.JobPlan, jobs)}}})
	}
	data, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var again *Facts
	membound.Bound{Free: 8 << 20, PerByte: 64}.Check(t, len(data), func() { again, err = Restore(data) })
	if err != nil {
		t.Fatal(err)
	}
	if len(again.jobs) != submissions*jobs {
		t.Errorf("%d jobs are restored", len(again.jobs))
	}
	t.Logf("%d bytes for each job", len(data)/(submissions*jobs))
}
