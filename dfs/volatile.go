package dfs

// Volatile is f but that nothing is made durable, which takes the time of a disk: it is
// for what can be computed again after a power cut. An FS that leaves durability to
// servers is what it was.
func Volatile(f FS) FS {
	if v, ok := f.(interface{ Volatile() FS }); ok {
		return v.Volatile()
	}
	return f
}

// Volatile is that of every scheme's FS.
func (m Mux) Volatile() FS {
	volatile := make(Mux, len(m))
	for scheme, f := range m {
		volatile[scheme] = Volatile(f)
	}
	return volatile
}
