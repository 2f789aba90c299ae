package dfs

// Real is the name of a directory without symbolic links, so that two names of one
// directory can be told. In a file system without links it is the name itself.
func Real(f FS, name string) (string, error) {
	if linked, ok := f.(interface{ Real(string) (string, error) }); ok {
		return linked.Real(name)
	}
	return name, nil
}

// Real is that of the scheme's FS.
func (m Mux) Real(name string) (string, error) {
	f, err := m.of(name)
	if err != nil {
		return "", err
	}
	return Real(f, name)
}
