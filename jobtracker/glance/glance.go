// Package glance shares values among clients that look at them often, such as open pages. A value is made when a client asks
// for it, and kept for a short time. However many clients ask, it is made once in that time.
//
// A value belongs to an epoch, the number of a leader's term: one of another epoch is never returned. If the last client
// that waits for a value leaves, the value is no longer made: its context ends. Errors are not kept, but all clients
// that wait get the same one.
//
// Values are shared, so no client may change them. Any goroutine may use a Value or a Table.
package glance

import (
	"context"
	"slices"
	"sync"
	"time"
)

// makeWait limits the time to make a value.
const makeWait = 30 * time.Second

// Value is a value that clients share.
type Value[T any] struct {
	make func(ctx context.Context) (T, error)
	keep func(value T, took time.Duration) time.Duration

	mu     sync.Mutex
	kept   *made[T] // nil: none
	making *making[T]
}

// made is a value, when its making began, and until when it is kept.
type made[T any] struct {
	value        T
	epoch        uint64
	began, until time.Time
}

// making is a value that is being made, and how many clients wait for it.
type making[T any] struct {
	epoch   uint64
	began   time.Time
	done    chan struct{}
	waiting int
	cancel  context.CancelFunc
	value   T
	err     error
	panic   any
}

// New returns a Value. make makes it; keep says how long one is kept that took so long to make.
func New[T any](make func(ctx context.Context) (T, error), keep func(value T, took time.Duration) time.Duration) *Value[T] {
	return &Value[T]{make: make, keep: keep}
}

// part is how many times the time that it took to make a value it is kept, at least: so clients that always ask for it
// take at most a fiftieth of a processor.
const part = 50

// For keeps values for a time, and longer if they took long to make.
func For[T any](least time.Duration) func(T, time.Duration) time.Duration {
	return func(_ T, took time.Duration) time.Duration { return max(least, part*took) }
}

// Get returns the value of an epoch.
func (v *Value[T]) Get(ctx context.Context, epoch uint64) (T, error) {
	return v.get(ctx, epoch, time.Time{}, v.make)
}

// get returns the value of an epoch if its making began at since or later, and otherwise makes it.
func (v *Value[T]) get(ctx context.Context, epoch uint64, since time.Time, produce func(context.Context) (T, error)) (value T, err error) {
	v.mu.Lock()
	if k := v.kept; k != nil && k.epoch == epoch && !k.began.Before(since) && time.Now().Before(k.until) {
		v.mu.Unlock()
		return k.value, nil
	}
	m := v.making
	if m == nil || m.epoch != epoch || m.began.Before(since) {
		m = v.begin(epoch, produce)
	}
	m.waiting++
	v.mu.Unlock()
	select {
	case <-m.done:
		if m.panic != nil {
			panic(m.panic) // in the goroutine of the request, which ends alone
		}
		return m.value, m.err
	case <-ctx.Done():
		v.mu.Lock()
		defer v.mu.Unlock()
		if m.waiting--; m.waiting == 0 {
			m.cancel()
			if v.making == m {
				v.making = nil // the next client begins again
			}
		}
		return value, context.Cause(ctx)
	}
}

// begin begins to make a value. The caller holds the lock.
func (v *Value[T]) begin(epoch uint64, produce func(context.Context) (T, error)) *making[T] {
	ctx, cancel := context.WithTimeout(context.Background(), makeWait)
	m := &making[T]{epoch: epoch, began: time.Now(), done: make(chan struct{}), cancel: cancel}
	v.making = m
	go func() {
		defer cancel()
		m.produce(ctx, produce)
		v.mu.Lock()
		defer v.mu.Unlock()
		now := time.Now()
		if m.err == nil && m.panic == nil && v.making == m {
			v.kept = &made[T]{m.value, epoch, m.began, now.Add(v.keep(m.value, now.Sub(m.began)))}
		}
		if v.making == m {
			v.making = nil
		}
		close(m.done)
	}()
	return m
}

// produce makes the value, and keeps a panic for the clients.
func (m *making[T]) produce(ctx context.Context, produce func(context.Context) (T, error)) {
	defer func() { m.panic = recover() }()
	m.value, m.err = produce(ctx)
}

// Table is a Value for each key, of those that were asked for last.
type Table[K comparable, T any] struct {
	most int
	make func(ctx context.Context, key K) (T, error)
	keep func(value T, took time.Duration) time.Duration

	mu    sync.Mutex
	byKey map[K]*Value[T]
	order []K // the one that was asked for last is the last
}

// NewTable returns a Table that keeps the values of at most so many keys.
func NewTable[K comparable, T any](most int, make func(ctx context.Context, key K) (T, error), keep func(value T, took time.Duration) time.Duration) *Table[K, T] {
	return &Table[K, T]{most: most, make: make, keep: keep, byKey: map[K]*Value[T]{}}
}

// Get returns the value of a key in an epoch.
func (t *Table[K, T]) Get(ctx context.Context, key K, epoch uint64) (T, error) {
	v := t.of(key)
	return v.get(ctx, epoch, time.Time{}, v.make)
}

// GetSince returns the value of a key in an epoch. Its making began at since or later. make makes it instead of the
// table's function: what it makes must depend on the key alone.
func (t *Table[K, T]) GetSince(ctx context.Context, key K, epoch uint64, since time.Time, make func(context.Context) (T, error)) (T, error) {
	return t.of(key).get(ctx, epoch, since, make)
}

// of returns the value of a key, which is then the one that was asked for last.
func (t *Table[K, T]) of(key K) *Value[T] {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.byKey[key]
	if v == nil {
		v = New(func(ctx context.Context) (T, error) { return t.make(ctx, key) }, t.keep)
		t.byKey[key] = v
	} else {
		t.order = slices.DeleteFunc(t.order, func(k K) bool { return k == key })
	}
	if t.order = append(t.order, key); len(t.order) > t.most {
		delete(t.byKey, t.order[0])
		t.order = t.order[1:]
	}
	return v
}
