package mapreduce

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/quernmr/quern/mapreduce/internal/driver"
	"github.com/quernmr/quern/mapreduce/internal/program"
	mrruntime "github.com/quernmr/quern/runtime"
)

// Dataset is the result of a job that a [Driver] has run: records of K and V in files. It is a small
// value, which parameters of later jobs may contain.
type Dataset[K, V any] struct {
	dir   string         // URL
	step  *driver.Result // nil in a worker, and in the client while it builds a job
	key   *Codec[K]
	value *Codec[V]
}

// Input reads the records as the input of a map. A Dataset that no job has written has none: its job is refused.
func (s Dataset[K, V]) Input() Input[Pair[K, V]] {
	if s.dir == "" {
		return Input[Pair[K, V]]{spec: &inputSpec{format: Binary{}.Name(), err: fmt.Errorf("the input is an empty Dataset: pass the result of a run in the parameters")}}
	}
	return stored(s.key, s.value, []string{program.EscapeGlob(s.dir)})
}

// Codecs sets encodings for types from other packages, as the definition of the result did.
func (s Dataset[K, V]) Codecs(k *Codec[K], v *Codec[V]) Dataset[K, V] {
	s.key, s.value = k, v
	return s
}

// Path returns the URL of the directory with the records.
func (s Dataset[K, V]) Path() string { return s.dir }

// Counter returns a counter of the job, or 0 if no task has added to one with that group and name. Hadoop's counters have
// Hadoop's groups and names.
func (s Dataset[K, V]) Counter(group, name string) int64 {
	if s.step == nil {
		return 0
	}
	return s.step.Counters.Get(group, name)
}

// All streams the records to the driver, file by file. If reading fails, the loop ends and d fails: every
// later Run returns the error, and the program exits with it, even if the driver's function returns nil.
func (s Dataset[K, V]) All(d *Driver) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if err := s.each(d, yield); err != nil {
			d.driving.Fail(err)
		}
	}
}

func (s Dataset[K, V]) each(d *Driver, yield func(K, V) bool) error {
	if s.step == nil {
		return fmt.Errorf("read a Dataset: it is empty, or it was not returned by Run")
	}
	if s.step.Dropped.Load() {
		return s.dropped()
	}
	if binary := (Binary{}).Name(); s.step.Format != binary {
		return fmt.Errorf("read %s: its job wrote the format %s: set Job.Format to mapreduce.Binary{}, or leave Job.Output empty", s.dir, s.step.Format)
	}
	types, err := formOf(s.key, s.value)
	if err != nil {
		return err
	}
	s.step.Read.Store(true)
	key, value := must(s.key), must(s.value)
	kd, vd := &decoder{keep: true}, &decoder{keep: true}
	return mrruntime.Stored(d, d.driving.Files(s.dir), s.dir, types, func(kb, vb []byte) (more bool, err error) {
		rec, err := readPair(key, value, kd, vd, kb, vb)
		return err == nil && yield(rec.A, rec.B), err
	})
}

// Drop removes the records before the session ends, to save space. A driver that takes up where it
// stopped does not need them again: the jobs that read them have ended. A session with a name keeps records that the
// driver has read with [Dataset.All], because it reads them again then.
func (s Dataset[K, V]) Drop(d *Driver) error {
	if s.step == nil {
		return fmt.Errorf("drop a Dataset: it is empty, or it was not returned by Run")
	}
	return d.driving.Drop(s.step)
}

// MarshalJSON implements [json.Marshaler]: a Dataset is passed by its place.
func (s Dataset[K, V]) MarshalJSON() ([]byte, error) {
	if s.step != nil && s.step.Dropped.Load() {
		return nil, s.dropped()
	}
	return json.Marshal(s.dir)
}

func (s Dataset[K, V]) dropped() error {
	return fmt.Errorf("read %s: the driver has dropped this Dataset", s.dir)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Dataset[K, V]) UnmarshalJSON(text []byte) error {
	*s = Dataset[K, V]{}
	return json.Unmarshal(text, &s.dir)
}
