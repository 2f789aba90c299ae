package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// TypesName is a file beside the binary part files of a job, which tells other jobs the types of the
// records: [wire.JobPlan.Types] and a newline.
const TypesName = "_types"

const maxTypes = 64 << 10

// publishMore is the part of the job's commit between the part files and _SUCCESS.
func (a *attempt) publishMore() error {
	if err := a.publishSkipped(); err != nil || a.plan().Types == "" {
		return err
	}
	err := writeAll(a.tree.fs, dfs.Join(a.tree.out, TypesName), []byte(a.plan().Types+"\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) { // by an earlier attempt
		return fmt.Errorf("commit job: types of records: %w", err)
	}
	return nil
}

// typedFiles returns the part files among the files of an input with types, and checks that the
// records have these types.
func typedFiles(f dfs.FS, in *wire.InputPlan, files []dfs.Info) ([]dfs.Info, error) {
	var parts []dfs.Info
	checked := make(map[string]bool)
	for _, file := range files {
		if !strings.HasPrefix(dfs.Base(file.Name), mainOutput+"-") {
			continue // a named output, with other types
		}
		if dir := dfs.Dir(file.Name); !checked[dir] {
			if err := checkTypes(f, dir, in.Types); err != nil {
				return nil, err
			}
			checked[dir] = true
		}
		parts = append(parts, file)
	}
	if len(files) > 0 && len(parts) == 0 {
		return nil, fmt.Errorf("%w: %s is no main output of a job: want files named %s-…", ErrInput, files[0].Name, mainOutput)
	}
	return parts, nil
}

func checkTypes(f dfs.FS, dir, want string) error {
	name := dfs.Join(dir, TypesName)
	text, err := readAll(f, name, maxTypes)
	if missing(err) {
		return fmt.Errorf("%w: %s has no file %s: it was not written by a job with Format: Binary, or by an earlier version", ErrInput, dir, TypesName)
	}
	if err != nil {
		return fmt.Errorf("types of %s: %w", dir, err)
	}
	if got := strings.TrimSuffix(string(text), "\n"); got != want {
		return fmt.Errorf("%w: %s has records of %s, but the program reads %s", ErrInput, dir, typesText(got), typesText(want))
	}
	return nil
}

// typesText formats types for an error.
func typesText(types string) string { return strings.ReplaceAll(types, "\t", " and ") }

// Stored calls each for the records of the main output in a directory, which a job has written in the
// binary format. Key and value are valid until each returns. It stops if each returns false or an error.
func Stored(ctx context.Context, f dfs.FS, dir, types string, each func(key, value []byte) (more bool, err error)) error {
	in := &wire.InputPlan{Format: formatBinary, Types: types}
	infos, err := filesOf(f, dfs.Info{Name: dir, Dir: true}, selection{}, nil)
	if err == nil {
		infos, err = typedFiles(f, in, infos)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", dir, err)
	}
	for _, info := range infos {
		more, err := storedFile(ctx, f, info, each)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func storedFile(ctx context.Context, f dfs.FS, info dfs.Info, each func(key, value []byte) (more bool, err error)) (more bool, err error) {
	if info.Size == 0 {
		return true, nil
	}
	file, err := f.Open(info.Name)
	if err != nil {
		return false, fmt.Errorf("read: %w", err)
	}
	defer file.Close()
	c := Chunk{Path: info.Name, Length: info.Size, Size: info.Size}
	records, err := shuffle.NewReader(ctx, shuffle.Range{Name: info.Name, File: file, Size: info.Size, To: info.Size, MaxRecord: math.MaxInt32})
	if err != nil {
		return false, fmt.Errorf("read %s: %w", info.Name, binaryError(c, math.MaxInt32, err))
	}
	for records.Next() {
		if more, err := each(records.Key(), records.Value()); err != nil {
			return false, fmt.Errorf("read %s: %w", info.Name, err)
		} else if !more {
			return false, nil
		}
	}
	if err := records.Err(); err != nil {
		return false, fmt.Errorf("read %s: %w", info.Name, binaryError(c, math.MaxInt32, err))
	}
	return true, nil
}
