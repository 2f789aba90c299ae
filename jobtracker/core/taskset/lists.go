package taskset

import "slices"

// Lists is lists of small numbers, of which there are as many as tasks. They lie end to
// end, so that the garbage collector has nothing to look at; where each ends is noted
// once they are not all of one length, as with three replicas of each block they are.
type Lists struct {
	n, each int     // how many, and of which length
	ends    []int32 // of each in all; nil: they are of one length
	all     []int32
	from    int // of the list that is being made, in all
}

// NewLists makes lists with room for so many numbers in all.
func NewLists(room int) Lists { return Lists{all: make([]int32, 0, room)} }

func (x *Lists) Len() int { return x.n }

// Members is the numbers of all lists, end to end.
func (x *Lists) Members() []int32 { return x.all }

// At is list i.
func (x *Lists) At(i int) []int32 {
	switch {
	case x.ends == nil:
		return x.all[i*x.each : (i+1)*x.each]
	case i == 0:
		return x.all[:x.ends[0]]
	}
	return x.all[x.ends[i-1]:x.ends[i]]
}

// Has says whether a number is in a short list. It looks at all of that: where the number
// is the processor cannot foresee, and it would have to wait for the list before it goes on.
func Has(list []int32, n int32) bool {
	found := false
	for _, other := range list {
		if other == n {
			found = true
		}
	}
	return found
}

// Add appends a number to the list that is being made, once.
func (x *Lists) Add(n int32) {
	if !slices.Contains(x.all[x.from:], n) {
		x.all = append(x.all, n)
	}
}

// End ends the list that is being made.
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
