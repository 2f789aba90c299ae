package dfs

// Volatile returns f without durability: Close and SyncDir do not wait for a disk. Use it
// for files that can be recomputed after a power cut. If f's servers make files durable
// anyway, it returns f itself.
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
