package dfs

// Private returns f with private permissions for new entries: mode 0700 for directories and
// 0600 for files. Existing entries keep theirs. An FS without permissions is returned
// unchanged.
func Private(f FS) FS {
	if p, ok := f.(interface{ Private() FS }); ok {
		return p.Private()
	}
	return f
}

// Private applies the function Private to the FS of every scheme.
func (m Mux) Private() FS {
	private := make(Mux, len(m))
	for scheme, f := range m {
		private[scheme] = Private(f)
	}
	return private
}
