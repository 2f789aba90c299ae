package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/quernmr/quern/dfs"
)

// Properties with the URLs of files with the cuts of a total order.
const (
	RangesPath    = "mapreduce.totalorderpartitioner.path" // it is read
	RangesOutPath = "quern.totalorder.path"                // it is written
)

// Ranges reads and writes the cuts of a total order in files of another program.
type Ranges struct {
	Read  func(file io.ReaderAt, size int64) iter.Seq2[[]byte, error]
	Write func(w io.Writer, cuts [][]byte) error
}

// cuts returns the cuts that a file has, or those of a sample, which it may write to a file. Such files have only
// keys, so cuts with a file divide no key.
func (a *attempt) cuts() (f cutsFile, err error) {
	if a.spreads() {
		f.Spread, err = a.spreadKeys()
		return f, err
	}
	from, to := a.plan().Properties[RangesPath], a.plan().Properties[RangesOutPath]
	if (from != "" || to != "") && a.job.Ranges == nil {
		return f, Fatal(errors.New("build job: code for files of ranges is missing"))
	}
	if from != "" {
		f.Cuts, err = a.readRanges(from)
		return f, err
	}
	s, err := a.planSample(placesFor(a.plan().Reduces))
	if err == nil {
		err = a.sampleKeys(s)
	}
	if err != nil {
		return f, fmt.Errorf("sample the input: %w", err)
	}
	f.Cuts = chooseCuts(s, a.plan().Reduces)
	switch {
	case to != "":
		err = a.writeRanges(to, f.Cuts)
	case a.job.DividesKeys && a.plan().Properties[DivideKeys] != "false":
		if f.Places = placesOf(s, a.plan().Reduces); f.Places != nil {
			f.Maps = s.maps
		}
	}
	return f, err
}

func (a *attempt) readRanges(name string) ([][]byte, error) {
	file, err := a.fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("property %s: %w", RangesPath, inputError(err))
	}
	defer file.Close()
	cuts, err := readCuts(a.job.Ranges.Read(file, file.Info().Size), a.plan().Reduces)
	if err != nil {
		return nil, fmt.Errorf("property %s: %w", RangesPath, inputError(fmt.Errorf("%s: %w", name, err)))
	}
	return cuts, nil
}

// readCuts collects the cuts of a number of reduces, and at most one more.
func readCuts(read iter.Seq2[[]byte, error], reduces int) (cuts [][]byte, err error) {
	for cut, err := range read {
		if err != nil {
			return nil, err
		}
		if cuts = append(cuts, cut); len(cuts) == reduces {
			return nil, BadInput(fmt.Errorf("it has the ranges of more than %d reduces, as many as the job has", reduces))
		}
	}
	if len(cuts) != reduces-1 {
		return nil, BadInput(fmt.Errorf("it has the ranges of %d reduces, and the job %d", len(cuts)+1, reduces))
	}
	if err := checkAscending(cuts); err != nil {
		return nil, BadInput(err)
	}
	return cuts, nil
}

// checkAscending returns an error unless each key is greater than the one before it, as Hadoop demands.
func checkAscending(cuts [][]byte) error {
	for i := 1; i < len(cuts); i++ {
		if bytes.Compare(cuts[i-1], cuts[i]) >= 0 {
			return fmt.Errorf("key %d is not greater than key %d", i+1, i)
		}
	}
	return nil
}

// writeRanges writes cuts to a new file. An earlier attempt may have done so: a sample has the same cuts each time.
func (a *attempt) writeRanges(name string, cuts [][]byte) error {
	fail := func(err error) error { return fmt.Errorf("property %s: %s: %w", RangesOutPath, name, err) }
	if err := checkAscending(cuts); err != nil {
		return Fatal(fail(fmt.Errorf("the sample has too few different keys for %d reduces: %w", len(cuts)+1, err)))
	}
	var file bytes.Buffer
	for i, cut := range cuts {
		if len(cut) >= sampledKey {
			return Fatal(fail(fmt.Errorf("key %d of the ranges has more than %d bytes", i+1, sampledKey-1)))
		}
	}
	if err := a.job.Ranges.Write(&file, cuts); err != nil {
		return Fatal(fail(err))
	}
	scratch := dfs.Join(dfs.Dir(name), "."+dfs.Base(name)+"."+a.id().String())
	if err := writeOnce(a.tree.fs, name, scratch, file.Bytes()); err != nil {
		return unwritable(fail(err))
	}
	there, err := readAll(a.fs, name, maxCutsFile)
	if err == nil && !bytes.Equal(there, file.Bytes()) {
		err = Fatal(fail(errors.New("it exists, with other content")))
	}
	return errors.Join(err, a.tree.fs.SyncDir(dfs.Dir(name)))
}
