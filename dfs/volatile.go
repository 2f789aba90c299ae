package dfs

// Volatile is f without durability: Close and SyncDir do not wait for a disk. It is for
// files that can be computed again after a power cut. If the servers of f make files
// durable, f itself is returned.
func Volatile(f FS) FS {
	if v, ok := f.(interface{ Volatile() FS }); ok {
		return v.Volatile()
	}
	return f
}

// Volatile applies the function Volatile to the FS of every scheme.
func (m Mux) Volatile() FS {
	volatile := make(Mux, len(m))
	for scheme, f := range m {
		volatile[scheme] = Volatile(f)
	}
	return volatile
}
