package taskset

import "slices"

// Lists holds lists of small numbers, one list per task, end to end, without pointers for the
// garbage collector. It stores their ends only if lengths differ: with three replicas of each
// block they are equal.
type Lists struct {
	n, each int     // number of lists, and length of the first one
	ends    []int32 // end of each list in all; nil: all have length each
	all     []int32
	from    int // where the unfinished list begins in all
}

// NewLists makes lists with room for a total of so many numbers.
func NewLists(room int) Lists { return Lists{all: make([]int32, 0, room)} }

// Len returns the number of finished lists.
func (x *Lists) Len() int { return x.n }

// Members returns the numbers of all lists, end to end.
func (x *Lists) Members() []int32 { return x.all }

// At returns list i.
func (x *Lists) At(i int) []int32 {
	switch {
	case x.ends == nil:
		return x.all[i*x.each : (i+1)*x.each]
	case i == 0:
		return x.all[:x.ends[0]]
	}
	return x.all[x.ends[i-1]:x.ends[i]]
}

// Has reports whether a number is in a short list. It reads the whole list, without an early
// exit that the processor would mispredict.
func Has(list []int32, n int32) bool {
	found := false
	for _, other := range list {
		if other == n {
			found = true
		}
	}
	return found
}

// Add appends a number to the unfinished list, unless the list has it.
func (x *Lists) Add(n int32) {
	if !slices.Contains(x.all[x.from:], n) {
		x.all = append(x.all, n)
	}
}

// End finishes the list.
func (x *Lists) End() {
	length := len(x.all) - x.from
	if x.n == 0 {
		x.each = length
	}
	if x.ends == nil && length != x.each {
		for i := range x.n {
			x.ends = append(x.ends, int32((i+1)*x.each))
		}
	}
	x.n++
	x.from = len(x.all)
	if x.ends != nil {
		x.ends = append(x.ends, int32(x.from))
	}
}
