package glance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestValue: clients share a value for a time, in an epoch. An error is not kept.
func TestValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made, fail := 0, errors.New("no")
		var err error
		v := New(func(context.Context) (int, error) {
			made++
			<-time.After(time.Second)
			return made, err
		}, func(_ int, took time.Duration) time.Duration { return 10 * took })
		get := func(epoch uint64, want int, wantErr error) {
			t.Helper()
			if got, err := v.Get(t.Context(), epoch); got != want || !errors.Is(err, wantErr) {
				t.Errorf("got %d, %v, want %d, %v", got, err, want, wantErr)
			}
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { get(1, 1, nil) })
		}
		all.Wait()
		<-time.After(9 * time.Second)
		get(1, 1, nil)
		get(2, 2, nil) // another leader
		<-time.After(11 * time.Second)
		err = fail
		get(2, 3, fail)
		err = nil
		get(2, 4, nil)
	})
}

// TestCancelled: a value is made while a client waits for it, and no longer.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cancelled atomic.Int32
		v := New(func(ctx context.Context) (int, error) {
			select {
			case <-ctx.Done():
				cancelled.Add(1)
				return 0, ctx.Err()
			case <-time.After(10 * time.Second):
				return 7, nil
			}
		}, For[int](time.Minute))
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		long, cancelLong := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancelLong()
		var all sync.WaitGroup
		for _, ctx := range []context.Context{short, long} {
			all.Go(func() {
				if _, err := v.Get(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a client that left got %v", err)
				}
			})
		}
		<-time.After(4 * time.Second)
		synctest.Wait()
		if cancelled.Load() != 0 {
			t.Error("it is cancelled although a client waits")
		}
		all.Wait()
		synctest.Wait()
		if cancelled.Load() != 1 {
			t.Errorf("cancelled %d times after the last client left", cancelled.Load())
		}
		if got, err := v.Get(t.Context(), 1); got != 7 || err != nil {
			t.Errorf("the next client gets %d, %v", got, err)
		}
	})
}

// TestTable: each key has a value. Those that were asked for last are kept.
func TestTable(t *testing.T) {
	const most = 8
	made := make(map[int]int)
	table := NewTable(most, func(_ context.Context, key int) (int, error) {
		made[key]++
		return key, nil
	}, For[int](time.Hour))
	get := func(key int) {
		t.Helper()
		if got, err := table.Get(t.Context(), key, 1); got != key || err != nil {
			t.Errorf("got %d, %v, want %d", got, err, key)
		}
	}
	for key := range most {
		get(key)
	}
	get(0)
	get(most) // replaces 1
	get(0)
	get(1)
	if made[0] != 1 || made[1] != 2 || made[2] != 1 || len(table.byKey) != most || len(table.order) != most {
		t.Errorf("values are made %v times, %d are kept in an order of %d", made, len(table.byKey), len(table.order))
	}
}

// TestFor: what takes long is kept long.
func TestFor(t *testing.T) {
	keep := For[int](time.Second)
	if short, long := keep(1, time.Millisecond), keep(1, time.Second); short != time.Second || long != part*time.Second {
		t.Errorf("kept for %v and %v", short, long)
	}
}

// TestGetSince: a value that began to be made before a time is not returned, not even while it is being made.
func TestGetSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, made := NewTable[int](8, nil, For[int](time.Hour)), 0
		get := func(age time.Duration, want int) {
			t.Helper()
			got, err := table.GetSince(t.Context(), 1, 1, time.Now().Add(-age), func(context.Context) (int, error) {
				made++
				mine := made
				<-time.After(10 * time.Second) // of the bubble's clock
				return mine, nil
			})
			if got != want || err != nil {
				t.Errorf("got %d, %v, want %d", got, err, want)
			}
		}
		var all sync.WaitGroup
		all.Go(func() { get(0, 1) })
		<-time.After(3 * time.Second)
		all.Go(func() { get(4*time.Second, 1) })
		synctest.Wait()
		all.Go(func() { get(2*time.Second, 2) })
		all.Wait()
		get(time.Minute, 2)
		get(5*time.Second, 3)
	})
}

// TestPanic: a panic is one of the client that waits, and the next client gets a value.
func TestPanic(t *testing.T) {
	made := 0
	v := New(func(context.Context) (int, error) {
		if made++; made == 1 {
			panic("no")
		}
		return made, nil
	}, For[int](time.Minute))
	func() {
		defer func() {
			if p := recover(); p != "no" {
				t.Errorf("panic %v, want no", p)
			}
		}()
		v.Get(t.Context(), 1)
		t.Error("Get returns")
	}()
	if got, err := v.Get(t.Context(), 1); got != 2 || err != nil {
		t.Errorf("got %d, %v, want 2", got, err)
	}
}
