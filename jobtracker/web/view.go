package web

import (
	"context"
	"slices"
	"sync"
	"time"
)

// view is a value that many clients share: it is made when one asks for it, and then kept for a time. It is below
// permissions: handlers leave out what a user may not see.
type view[T any] struct {
	make func(ctx context.Context) (T, error)
	keep func(value T, took time.Duration) time.Duration // how long a value is kept that took so long to make
	now  func() time.Time

	mu     sync.Mutex
	kept   *made[T] // nil: none
	making *making[T]
}

// made is a value, and until when it is kept.
type made[T any] struct {
	value T
	epoch uint64
	until time.Time
}

// making is a value that is being made, and how many clients wait for it.
type making[T any] struct {
	epoch   uint64
	done    chan struct{}
	waiting int
	cancel  context.CancelFunc
	value   T
	err     error
}

// get returns the value of an epoch. If the last client that waits for it leaves, the value is no longer made.
func (v *view[T]) get(ctx context.Context, epoch uint64) (value T, err error) {
	v.mu.Lock()
	if k := v.kept; k != nil && k.epoch == epoch && v.now().Before(k.until) {
		v.mu.Unlock()
		return k.value, nil
	}
	m := v.making
	if m == nil || m.epoch != epoch {
		m = v.begin(epoch)
	}
	m.waiting++
	v.mu.Unlock()
	select {
	case <-m.done:
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
func (v *view[T]) begin(epoch uint64) *making[T] {
	ctx, cancel := context.WithTimeout(context.Background(), requestWait)
	m := &making[T]{epoch: epoch, done: make(chan struct{}), cancel: cancel}
	v.making = m
	go func() {
		defer cancel()
		began := v.now()
		m.value, m.err = v.make(ctx)
		v.mu.Lock()
		defer v.mu.Unlock()
		now := v.now()
		if m.err == nil && v.making == m {
			v.kept = &made[T]{m.value, epoch, now.Add(v.keep(m.value, now.Sub(began)))}
		}
		if v.making == m {
			v.making = nil
		}
		close(m.done)
	}()
	return m
}

// viewPart is how many times the time that it took to make a value is kept, at least: so clients that always ask for it
// take at most a fiftieth of a processor.
const viewPart = 50

// keepFor keeps values for a time, and longer if they took long to make.
func keepFor[T any](least time.Duration) func(T, time.Duration) time.Duration {
	return func(_ T, took time.Duration) time.Duration { return max(least, viewPart*took) }
}

// maxViews is how many values of a [views] are kept.
const maxViews = 64

// views is a view for each key, of those that were asked for last.
type views[K comparable, T any] struct {
	view func(key K) *view[T]

	mu    sync.Mutex
	byKey map[K]*view[T]
	order []K // the one that was asked for last is the last
}

// get returns the value of a key in an epoch.
func (v *views[K, T]) get(ctx context.Context, key K, epoch uint64) (T, error) {
	v.mu.Lock()
	x := v.byKey[key]
	if x == nil {
		if v.byKey == nil {
			v.byKey = make(map[K]*view[T])
		}
		x = v.view(key)
		v.byKey[key] = x
	} else {
		v.order = slices.DeleteFunc(v.order, func(k K) bool { return k == key })
	}
	if v.order = append(v.order, key); len(v.order) > maxViews {
		delete(v.byKey, v.order[0])
		v.order = v.order[1:]
	}
	v.mu.Unlock()
	return x.get(ctx, epoch)
}
