package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// missing reports whether an error means that the name does not exist. Some names cannot
// exist: they are too long, or below a file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}

// inputFiles lists the files of a job's input, in the order of its paths. Files of a
// directory or pattern are sorted by name.
func inputFiles(f dfs.FS, in *wire.InputPlan, format Format, s settings) ([]dfs.Info, error) {
	var files []dfs.Info
	text, ok := format.(interface{ readsText() bool })
	which := selection{recursive: s.recursive, lines: ok && text.readsText(), binary: make(map[string]bool)}
	for _, p := range in.Paths {
		more, err := filesAt(f, p, which)
		for i := 0; i < len(more) && err == nil; i++ {
			err = format.CheckFile(more[i])
		}
		if err != nil {
			return nil, inputError(err)
		}
		files = append(files, more...)
	}
	if in.Types == "" {
		return files, nil
	}
	files, err := typedFiles(f, in, files)
	if err != nil {
		return nil, inputError(err)
	}
	return files, nil
}

// inputError marks input errors as fatal if every attempt would fail.
func inputError(err error) error {
	if missing(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EISDIR) ||
		errors.Is(err, syscall.ELOOP) || errors.Is(err, ErrInput) || errors.Is(err, dfs.ErrChanged) || errors.Is(err, dfs.ErrUnknownScheme) {
		return Fatal(fmt.Errorf("input: %w", err))
	}
	return fmt.Errorf("input: %w", err)
}

// changedError reports a file with another size or modification time than during the job's
// setup. A local file may differ between machines.
func changedError(url string) error {
	err := fmt.Errorf("%s: %w", url, ErrChanged)
	if strings.HasPrefix(url, "file://") {
		err = fmt.Errorf("%w; on a cluster all machines need it with the same size and modification time: copy it with rsync -t or cp -p, or put it on a shared file system", err)
	}
	return Fatal(err)
}

func filesAt(f dfs.FS, name string, which selection) ([]dfs.Info, error) {
	matched, err := matches(f, name)
	if err != nil {
		return nil, err
	}
	var files []dfs.Info
	for _, info := range matched {
		if err := which.refuseBinary(f, info); err != nil {
			return nil, err
		}
		more, err := filesOf(f, info, which, nil)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// matches returns the files of a path or pattern, sorted by name. It refuses a path that
// is a file's name and, as a pattern, matches other files.
func matches(f dfs.FS, name string) ([]dfs.Info, error) {
	info, err := f.Stat(name)
	if !IsPattern(name) {
		return []dfs.Info{info}, err
	}
	exists := err == nil
	full := !isWild(name) // the path of one file, which may be hidden
	matched, err := expand(name, func(pattern string) ([]dfs.Info, error) {
		found, err := glob(f, pattern)
		if !full {
			found = slices.DeleteFunc(found, func(i dfs.Info) bool { return hidden(i.Name) })
		}
		return found, err
	})
	switch {
	case exists && (err != nil || len(matched) == 0 || len(matched) == 1 && matched[0].Name == info.Name):
		return []dfs.Info{info}, nil
	case err != nil:
		return nil, err
	case exists:
		return nil, fmt.Errorf(`%w: %s exists, and as a pattern matches %d names; write \ before each of its special characters to read that file, or rename it`, ErrInput, name, len(matched))
	case len(matched) == 0:
		return nil, fmt.Errorf("%w: no file matches %s", ErrInput, name)
	}
	slices.SortStableFunc(matched, func(a, b dfs.Info) int { return cmp.Compare(a.Name, b.Name) })
	return matched, nil
}

// selection tells which files of a directory are listed.
type selection struct {
	recursive bool            // those of directories in it, too
	hidden    bool            // also hidden ones
	lines     bool            // they must be text: binary records are refused
	binary    map[string]bool // with lines: whether a directory that was looked at has binary records
}

// refuseBinary refuses a file that a path or pattern names, if a job has written it in the binary format. For directories,
// filesOf does so.
func (s *selection) refuseBinary(f dfs.FS, info dfs.Info) error {
	if !s.lines || info.Dir || hidden(info.Name) {
		return nil
	}
	dir := dfs.Dir(info.Name)
	binary, seen := s.binary[dir]
	if !seen {
		_, err := f.Stat(dfs.Join(dir, TypesName))
		binary = err == nil
		s.binary[dir] = binary
	}
	if binary {
		return notLines(info.Name)
	}
	return nil
}

func notLines(name string) error {
	return fmt.Errorf("%w: %s has binary records, not lines of text: read them with mapreduce.Stored", ErrInput, name)
}

// filesOf returns info itself if it is a file. For a directory it returns the files of the
// selection. above lists the parent directories, with symbolic links resolved.
func filesOf(f dfs.FS, info dfs.Info, which selection, above []string) ([]dfs.Info, error) {
	if !info.Dir {
		return []dfs.Info{info}, nil
	}
	if which.recursive {
		real, err := dfs.Real(f, info.Name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(above, real) {
			return nil, fmt.Errorf("%w: %s is a directory above itself, by a symbolic link", ErrInput, info.Name)
		}
		above = append(above, real)
	}
	infos, err := f.List(info.Name)
	if err != nil {
		return nil, err
	}
	var files []dfs.Info
	for _, entry := range infos {
		switch {
		case which.lines && dfs.Base(entry.Name) == TypesName:
			return nil, notLines(info.Name)
		case hidden(entry.Name) && !which.hidden:
		case !entry.Dir:
			files = append(files, entry)
		case !which.recursive:
			return nil, fmt.Errorf("%w: %s is a directory within a directory; to read it too, set %s=true",
				ErrInput, entry.Name, InputRecursive)
		default:
			more, err := filesOf(f, entry, which, above)
			if err != nil {
				return nil, err
			}
			files = append(files, more...)
		}
	}
	return files, nil
}

// partFiles lists the main output of an earlier job of the flow: one file per committing
// task. A missing file is an error.
func partFiles(f dfs.FS, sub *wire.Submission, index int, job wire.JobID) ([]dfs.Info, error) {
	dir := OutputOf(sub, index)
	infos, err := f.List(dir)
	if err != nil {
		return nil, inputError(err)
	}
	written := make(map[string]dfs.Info, len(infos))
	for _, info := range infos {
		if !info.Dir {
			written[dfs.Base(info.Name)] = info
		}
	}
	kind, n := wire.Reduce, sub.Plan.Jobs[index].Reduces
	if n == 0 {
		kind = wire.Map
		if n, err = countSplits(f, sub.Staging, job); err != nil {
			return nil, fmt.Errorf("input: %s: number of its files: %w", dir, err)
		}
	}
	files := make([]dfs.Info, n)
	for i := range files {
		info, ok := written[outputName(mainOutput, kind, i)]
		if !ok {
			return nil, Fatal(fmt.Errorf("input: %s, which job %s has written: %w",
				dfs.Join(dir, outputName(mainOutput, kind, i)), sub.Plan.Jobs[index].Name, fs.ErrNotExist))
		}
		files[i] = info
	}
	return files, nil
}

// OutputOf returns the URL of the output directory of a submission's job.
func OutputOf(sub *wire.Submission, index int) string {
	if out := sub.Plan.Jobs[index].Output; out != "" {
		return out
	}
	return dfs.Join(sub.Staging, "tmp", fmt.Sprint(index))
}

// Check finds problems that would fail the plan's jobs: bad property values, missing input,
// existing output, bad output names.
func Check(f dfs.FS, plan *wire.Plan) error {
	for i := range plan.Jobs {
		job := &plan.Jobs[i]
		if err := checkJob(f, job); err != nil {
			return fmt.Errorf("job %s: %w", job.Name, err)
		}
	}
	return nil
}

func checkJob(f dfs.FS, job *wire.JobPlan) error {
	s, err := readSettings(job.Properties)
	if err != nil {
		return err
	}
	for _, name := range job.Outputs {
		if name == "" || name == mainOutput || hidden(name) || strings.Contains(name, "/") {
			return Fatal(fmt.Errorf("an output cannot be named %q", name))
		}
	}
	for i := range job.Inputs {
		in, format := &job.Inputs[i], formatOf(&job.Inputs[i])
		if err := format.Check(in, s.recordMax); err != nil {
			return Fatal(fmt.Errorf("input %d: %w", i, err))
		}
		files, err := inputFiles(f, in, format, s)
		if err != nil {
			return err
		}
		if err := checkReadable(f, files); err != nil {
			return err
		}
	}
	if job.Output == "" {
		return nil
	}
	return CheckOutput(f, job.Output)
}

// CheckOutput returns an error if the URL of an output is too long or exists.
func CheckOutput(f dfs.FS, url string) error {
	if err := checkLength(url); err != nil {
		return err
	}
	_, err := f.Stat(url)
	switch {
	case err == nil:
		if _, err := f.Stat(dfs.Join(url, temporaryName)); err == nil {
			return Fatal(fmt.Errorf("%w: %s: a job writes there, or was interrupted; if none runs, remove the directory", ErrOutputExists, url))
		}
		return Fatal(fmt.Errorf("%w: %s", ErrOutputExists, url))
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("output: %w", err)
}

// Limits of file systems: Linux and HDFS allow 255 bytes for a name, Linux 4095 for a
// path. An output's path must be shorter, because the files in it have longer paths.
const (
	maxName       = 255
	maxOutputPath = 3500
)

// checkLength refuses an output with a name or path that is too long.
func checkLength(output string) error {
	for element := range strings.SplitSeq(output, "/") {
		if len(element) > maxName {
			return Fatal(fmt.Errorf("output: the name %.40s… in its path has %d bytes, at most %d are allowed", element, len(element), maxName))
		}
	}
	if len(output) > maxOutputPath {
		return Fatal(fmt.Errorf("output: the path %.80s… has %d bytes, at most %d are allowed", output, len(output), maxOutputPath))
	}
	return nil
}

// checkReadable opens only the first files. Opening 10,000 would take too long, and a map
// that cannot open a file fails the job at once anyway.
func checkReadable(f dfs.FS, files []dfs.Info) error {
	for _, info := range files[:min(len(files), 16)] {
		file, err := f.Open(info.Name)
		if err != nil {
			return inputError(err)
		}
		file.Close()
	}
	return nil
}
