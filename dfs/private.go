package dfs

// Private is f but for the permissions of what is made by it: directories are for the
// file system's user alone (mode 0700), and so are files (0600). What is there keeps
// those it has. An FS that knows no permissions is what it was.
func Private(f FS) FS {
	if p, ok := f.(interface{ Private() FS }); ok {
		return p.Private()
	}
	return f
}

// Private is that of every scheme's FS.
func (m Mux) Private() FS {
	private := make(Mux, len(m))
	for scheme, f := range m {
		private[scheme] = Private(f)
	}
	return private
}
