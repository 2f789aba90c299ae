package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/quernmr/quern/dfs"
)

// KeepFiles makes files part of the attempt's output that others, such as a command, have put into [Task.OutputDir]. Call
// it when nothing writes them any more. They are published with the attempt's own files, or not at all.
func (t *Task) KeepFiles() error {
	o := t.outputs
	if o == nil || !o.made {
		return nil
	}
	infos, err := o.fs.List(o.dir)
	if err != nil {
		return fmt.Errorf("list the attempt's output: %w", err)
	}
	for _, info := range infos {
		name := dfs.Base(info.Name)
		if o.wrote(name) {
			continue
		}
		if err := checkKept(name, info); err != nil {
			return err
		}
		o.kept = append(o.kept, manifestFile{Name: name, Size: info.Size})
	}
	return nil
}

// wrote reports whether a file is one of the attempt's own.
func (o *outputs) wrote(name string) bool {
	for _, out := range o.files {
		if out.name == name {
			return true
		}
	}
	return false
}

// reservedNames are those that the tree has a meaning for.
var reservedNames = []string{manifestName, successName, temporaryName, TypesName}

// checkKept refuses what cannot be published, and makes a local file durable. In other file systems a file is as durable as
// its writer made it.
func checkKept(name string, info dfs.Info) error {
	refused := ""
	file, local := strings.CutPrefix(info.Name, "file://")
	switch {
	case slices.Contains(reservedNames, name):
		refused = "the name is reserved"
	case info.Dir:
		refused = "it is a directory: only files become part of the output"
	case local:
		stat, err := os.Lstat(file)
		if err != nil {
			return fmt.Errorf("look at a file of the output: %w", err)
		}
		if !stat.Mode().IsRegular() {
			refused = "it is not a regular file"
		}
	}
	if refused != "" {
		return Fatal(fmt.Errorf("the attempt has put %s into its output directory, which is refused: %s", name, refused))
	}
	if !local {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("make a file of the output durable: %w", err)
	}
	return errors.Join(f.Sync(), f.Close())
}

// manifestFiles lists the files of the attempt, with those that it keeps, by name.
func (o *outputs) manifestFiles() []manifestFile {
	all := slices.Clone(o.kept)
	for _, f := range o.sorted() {
		file := manifestFile{Name: f.name, Size: f.file.size}
		if f.file.sum != nil {
			file.Sum = f.file.sum.Sum64()
		}
		all = append(all, file)
	}
	slices.SortFunc(all, func(a, b manifestFile) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
