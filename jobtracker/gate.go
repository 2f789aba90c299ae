package jobtracker

import "sync"

// mostFiles is how many effects on files run at once. A NameNode has ten handlers by
// default, so that more would only wait there, before the calls of running attempts.
const mostFiles = 16

// gate lets a number of functions run at once. Others wait in the order in which they came.
type gate struct {
	mu      sync.Mutex
	most    int
	running int
	waiting []func()
}

// add has do run as soon as it is its turn.
func (t *gate) add(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == t.most {
		t.waiting = append(t.waiting, do)
		return
	}
	t.running++
	go t.run(do)
}

// run runs do, and then what waits.
func (t *gate) run(do func()) {
	for do != nil {
		do()
		do = t.next()
	}
}

// next takes what waits for longest, nil when nothing does.
func (t *gate) next() (do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.running--
		return nil
	}
	do, t.waiting[0] = t.waiting[0], nil
	t.waiting = t.waiting[1:]
	return do
}
