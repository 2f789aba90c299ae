package dfs

// Real returns a directory's name with symbolic links resolved, so that two names of one
// directory become equal. In a file system without links it returns the name itself.
func Real(f FS, name string) (string, error) {
	if linked, ok := f.(interface{ Real(string) (string, error) }); ok {
		return linked.Real(name)
	}
	return name, nil
}

// Real calls Real on the scheme's FS.
func (m Mux) Real(name string) (string, error) {
	f, err := m.fsFor(name)
	if err != nil {
		return "", err
	}
	return Real(f, name)
}
