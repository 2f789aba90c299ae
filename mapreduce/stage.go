package mapreduce

import (
	"errors"

	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// stage is a job's code and description, without its types.
type stage interface {
	emitted
	check(Format) error // all errors in types and use
	resultTypes() (key, value string)
	resultForm() (string, error) // the encodings of both
	reduces() bool
	dividesKeys() bool                    // records with equal keys may be in several partitions of a total order
	spreadsKeys() bool                    // records of a side of a join with equal keys may be in several partitions
	reduce(*jobSpec) mrruntime.ReduceFunc // nil: map-only
}

// emitted describes the map output of a stage.
type emitted interface {
	inputs() []*inputSpec
	smallSides() []*broadcast // that the maps look up
	checkPairs() error
	pairTypes() (key, value string)
	combines() bool
	ordered() bool             // across partitions
	ranges() *mrruntime.Ranges // nil: no file has them
	maps(*jobSpec) []mapFunc
	texts() []func(key, value []byte) string                       // for each map function: prints a record that it emits; nil: map-only
	recordText() func(key, value []byte) string                    // prints a record of the reduces' input; nil: map-only
	groupText() func(group []byte) (string, error)                 // prints the key of a group of the reduces' input; nil: map-only
	combiner(*jobSpec) func(*mrruntime.Task) mrruntime.CombineFunc // nil: none
	withoutReduces() stage                                         // for mapreduce.job.reduces=0; nil: a join, which needs reduces
}

// shaped is pairs with the shape of the keys, which depends on the kind of reduce.
type shaped[K, V any] struct {
	*Pairs[K, V]
	shape shape[K]
}

func (p shaped[K, V]) checkPairs() error           { return errors.Join(p.check(), p.checkOrder()) }
func (p shaped[K, V]) pairTypes() (string, string) { return typeName(p.key), typeName(p.value) }
func (p shaped[K, V]) ordered() bool               { return p.totalOrder }
func (p shaped[K, V]) withoutReduces() stage       { return p.mapOnly().stage }

// reduced is a stage with reduces.
type reduced[KO, VO any] struct {
	emitted
	result  *Result[KO, VO]
	prefix  func() func(key []byte) (int, error) // as in shape
	run     func(*reduction[KO, VO]) error       // called for each partition
	single  bool                                 // run treats each record by itself
	spreads bool                                 // see stage.spreadsKeys
}

func newResult[KO, VO any](from emitted, prefix func() func([]byte) (int, error), run func(*reduction[KO, VO]) error) *Result[KO, VO] {
	r := &Result[KO, VO]{}
	r.stage = &reduced[KO, VO]{emitted: from, result: r, prefix: prefix, run: run}
	return r
}

func (s *reduced[KO, VO]) check(f Format) error {
	return errors.Join(s.checkPairs(), s.result.check(f))
}

func (s *reduced[KO, VO]) resultTypes() (string, string) { return s.result.types() }

func (s *reduced[KO, VO]) resultForm() (string, error) { return formOf(s.result.key, s.result.value) }

func (s *reduced[KO, VO]) reduces() bool { return true }

// A combiner leaves few records of a key.
func (s *reduced[KO, VO]) dividesKeys() bool { return s.single && !s.combines() }

func (s *reduced[KO, VO]) spreadsKeys() bool { return s.spreads }

func (s *reduced[KO, VO]) reduce(job *jobSpec) mrruntime.ReduceFunc {
	return func(rt *mrruntime.Task, in mrruntime.Records) (err error) {
		x := &reduction[KO, VO]{t: newTask(rt, job), g: &groups{in: in, keyText: s.groupText()}, key: must(s.result.key), value: must(s.result.value)}
		if skipper, ok := in.(groupSkipper); ok {
			x.g.skipper, x.g.text = skipper, s.recordText()
		}
		x.t.locate = x.g.located
		x.g.measure()
		defer x.t.replacePanic(&err)
		if s.prefix != nil {
			x.g.prefix = s.prefix()
		}
		if x.emit, err = newWriter(x.t, "", x.key, x.value); err != nil {
			return err
		}
		err = x.t.end(x.g.readErr, s.run(x))
		x.t.Counter(wire.TaskCounters, wire.ReduceInputGroups).Add(x.g.n - x.g.skipped)
		return err
	}
}

// mapped is a stage without reduces.
type mapped[K, V any] struct {
	*Pairs[K, V]
	result *Result[K, V]
}

func (p *Pairs[K, V]) mapOnly() *Result[K, V] {
	r := &Result[K, V]{key: p.key, value: p.value}
	r.stage = &mapped[K, V]{p, r}
	return r
}

func (s *mapped[K, V]) checkPairs() error                                             { return s.Pairs.check() }
func (s *mapped[K, V]) check(f Format) error                                          { return errors.Join(s.checkPairs(), s.result.check(f)) }
func (s *mapped[K, V]) pairTypes() (string, string)                                   { return s.result.types() }
func (s *mapped[K, V]) resultTypes() (string, string)                                 { return s.result.types() }
func (s *mapped[K, V]) resultForm() (string, error)                                   { return formOf(s.result.key, s.result.value) }
func (s *mapped[K, V]) combines() bool                                                { return false }
func (s *mapped[K, V]) ordered() bool                                                 { return false }
func (s *mapped[K, V]) texts() []func(key, value []byte) string                       { return nil }
func (s *mapped[K, V]) recordText() func(key, value []byte) string                    { return nil }
func (s *mapped[K, V]) groupText() func(group []byte) (string, error)                 { return nil }
func (s *mapped[K, V]) combiner(*jobSpec) func(*mrruntime.Task) mrruntime.CombineFunc { return nil }
func (s *mapped[K, V]) ranges() *mrruntime.Ranges                                     { return nil }
func (s *mapped[K, V]) reduces() bool                                                 { return false }
func (s *mapped[K, V]) dividesKeys() bool                                             { return false }
func (s *mapped[K, V]) spreadsKeys() bool                                             { return false }
func (s *mapped[K, V]) reduce(*jobSpec) mrruntime.ReduceFunc                          { return nil }
func (s *mapped[K, V]) withoutReduces() stage                                         { return s }

func (s *mapped[K, V]) maps(job *jobSpec) []mapFunc {
	p := *s.Pairs
	p.key, p.value = s.result.key, s.result.value
	return p.mapOnlyFuncs(job)
}
