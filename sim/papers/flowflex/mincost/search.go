package mincost

import "math"

// search finds shortest paths in the residual graph.
type search struct {
	arcs      []arc
	first     []int32 // out[first[n]:first[n+1]] are the arcs that leave node n
	out       []int32
	potential []float64
	distance  []float64 // by reduced costs, of the last search
	settled   []bool
	via       []int32 // the last arc on the path to a node
	heap      heap
}

func newSearch(g *Graph) *search {
	s := &search{
		arcs:      g.arcs,
		first:     make([]int32, g.nodes+1),
		out:       make([]int32, len(g.arcs)),
		potential: make([]float64, g.nodes),
		distance:  make([]float64, g.nodes),
		settled:   make([]bool, g.nodes),
		via:       make([]int32, g.nodes),
	}
	for i := range g.arcs {
		s.first[g.arcs[i].from+1]++
	}
	for n := range g.nodes {
		s.first[n+1] += s.first[n]
	}
	next := append([]int32(nil), s.first[:g.nodes]...)
	for i := range g.arcs {
		from := g.arcs[i].from
		s.out[next[from]] = int32(i)
		next[from]++
	}
	s.heap.init(g.nodes)
	return s
}

// initialPotentials makes all reduced costs non-negative, by Bellman and Ford's rule from all
// nodes at once. It takes O(N E), but one pass if no cost is negative.
func (s *search) initialPotentials() error {
	for range len(s.potential) + 1 {
		changed := false
		for i := 0; i < len(s.arcs); i += 2 {
			a := &s.arcs[i]
			if d := s.potential[a.from] + a.cost; a.left > 0 && d < s.potential[a.to] {
				s.potential[a.to], changed = d, true
			}
		}
		if !changed {
			return nil
		}
	}
	return ErrNegativeCycle
}

// shortestPath runs Dijkstra's algorithm until the sink is settled, and moves the potentials by
// the distances. Unsettled nodes are at least as far as the sink, and its distance keeps their
// reduced costs non-negative too.
func (s *search) shortestPath(source, sink int) bool {
	for n := range s.distance {
		s.distance[n], s.settled[n] = math.Inf(1), false
	}
	s.heap.reset()
	s.distance[source], s.via[source] = 0, -1
	s.heap.lower(int32(source), s.distance)
	for s.heap.len() > 0 {
		n := s.heap.pop(s.distance)
		s.settled[n] = true
		if int(n) == sink {
			break
		}
		s.relax(n)
	}
	if !s.settled[sink] {
		return false
	}
	sinkDistance := s.distance[sink]
	for n := range s.potential {
		s.potential[n] += min(s.distance[n], sinkDistance)
	}
	return true
}

func (s *search) relax(n int32) {
	base := s.distance[n] + s.potential[n]
	for _, i := range s.out[s.first[n]:s.first[n+1]] {
		a := &s.arcs[i]
		if a.left == 0 || s.settled[a.to] {
			continue
		}
		// Only rounding can make it smaller than the distance of n.
		d := max(base+a.cost-s.potential[a.to], s.distance[n])
		if d < s.distance[a.to] {
			s.distance[a.to], s.via[a.to] = d, i
			s.heap.lower(a.to, s.distance)
		}
	}
}

// fill sends the largest possible amount over the last shortest path, at most limit.
func (s *search) fill(source, sink int, limit int64) int64 {
	for n := int32(sink); n != int32(source); n = s.arcs[s.via[n]].from {
		limit = min(limit, s.arcs[s.via[n]].left)
	}
	for n := int32(sink); n != int32(source); n = s.arcs[s.via[n]].from {
		s.arcs[s.via[n]].left -= limit
		s.arcs[s.via[n]^1].left += limit
	}
	return limit
}

// heap is a binary heap of nodes by distance, then number; distances of nodes may fall.
type heap struct {
	nodes []int32
	at    []int32 // index of a node in nodes; -1: not in the heap
}

func (h *heap) init(nodes int) {
	h.at = make([]int32, nodes)
	for n := range h.at {
		h.at[n] = -1
	}
}

func (h *heap) reset() {
	for _, n := range h.nodes {
		h.at[n] = -1
	}
	h.nodes = h.nodes[:0]
}

func (h *heap) len() int { return len(h.nodes) }

func less(a, b int32, distance []float64) bool {
	return distance[a] < distance[b] || distance[a] == distance[b] && a < b
}

// lower adds a node, or restores its place after its distance has fallen.
func (h *heap) lower(n int32, distance []float64) {
	i := h.at[n]
	if i < 0 {
		i = int32(len(h.nodes))
		h.nodes = append(h.nodes, n)
	}
	for i > 0 {
		up := (i - 1) / 2
		if !less(n, h.nodes[up], distance) {
			break
		}
		h.nodes[i] = h.nodes[up]
		h.at[h.nodes[i]] = i
		i = up
	}
	h.nodes[i], h.at[n] = n, i
}

// pop removes the nearest node.
func (h *heap) pop(distance []float64) int32 {
	top, last := h.nodes[0], h.nodes[len(h.nodes)-1]
	h.nodes = h.nodes[:len(h.nodes)-1]
	h.at[top] = -1
	if top == last {
		return top
	}
	i, size := int32(0), int32(len(h.nodes))
	for {
		down := 2*i + 1
		if down >= size {
			break
		}
		if down+1 < size && less(h.nodes[down+1], h.nodes[down], distance) {
			down++
		}
		if !less(h.nodes[down], last, distance) {
			break
		}
		h.nodes[i] = h.nodes[down]
		h.at[h.nodes[i]] = i
		i = down
	}
	h.nodes[i], h.at[last] = last, i
	return top
}
