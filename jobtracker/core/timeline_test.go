package core

import "time"

// timeline is a heap of what happens later: by time, then in the order in which it was added.
type timeline []moment

type moment struct {
	at  time.Duration
	seq int
	do  func()
}

func (q timeline) Len() int { return len(q) }
func (q timeline) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q timeline) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *timeline) Push(x any)   { *q = append(*q, x.(moment)) }
func (q *timeline) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
