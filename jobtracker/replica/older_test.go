package replica

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/jobtracker/core"
)

var record = flag.String("record", "", "have TestOlderLog write a log of this build into a file")

// TestOlderLog: this build reads a log that an older build has written, a snapshot and entries
// after it. Never change files of testdata/older. If the format of the log changes, record another
// file:
//
//	go test ./jobtracker/replica -run TestOlderLog -record testdata/older/NAME.txt
//
// A recording has a line for each job. For each file it has a line "file PATH SIZE". Then it has
// a line "OFFSET HEX" for each 32 bytes of the file, except where all are zero.
func TestOlderLog(t *testing.T) {
	t.Parallel()
	if *record != "" {
		recordLog(t, *record)
	}
	names, err := filepath.Glob("testdata/older/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		dir := t.TempDir()
		jobs := restoreLog(t, name, dir)
		s := serve(t, Config{ID: "jt1", Dir: dir, segmentSize: 4096}, mem.New(1<<20))
		for key, want := range jobs {
			if id := submit(t, []*server{s}, key); id.String() != want {
				t.Errorf("%s: %s is known as %v, was %s", name, key, id, want)
			}
		}
		if all, _, err := s.Jobs(t.Context(), core.Query{}); err != nil || len(all) != len(jobs) || all[0].Name != "count" {
			t.Errorf("%s: jobs are %+v, %v", name, all, err)
		}
		s.end(t)
	}
}

// recordLog records a log with one job in its snapshot and another job in the entries after it.
func recordLog(t *testing.T, name string) {
	files := mem.New(1 << 20)
	s := serve(t, Config{ID: "jt1", Dir: t.TempDir(), segmentSize: 4096, TrailingEntries: 1}, files)
	if err := s.replica.Bootstrap([]Voter{{ID: "jt1", Addr: s.replica.Addr()}}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	fmt.Fprintln(&out, "job first", submit(t, []*server{s}, "first"))
	s.end(t) // takes a snapshot
	s = serve(t, s.cfg, files)
	fmt.Fprintln(&out, "job second", submit(t, []*server{s}, "second"))
	err := fs.WalkDir(os.DirFS(s.cfg.Dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(s.cfg.Dir, path))
		fmt.Fprintln(&out, "file", path, len(data))
		for at := 0; at < len(data); at += 32 {
			if part := data[at:min(at+32, len(data))]; !allZero(part) {
				fmt.Fprintf(&out, "%d %x\n", at, part)
			}
		}
		return err
	})
	if err := errors.Join(err, os.WriteFile(name, out.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// restoreLog writes the files of a recorded log to dir, and returns the ids of its jobs by key.
func restoreLog(t *testing.T, name, dir string) map[string]string {
	t.Helper()
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	jobs := make(map[string]string)
	var file *os.File
	for lines := bufio.NewScanner(in); err == nil && lines.Scan(); {
		line := lines.Text()
		var key, id, path string
		var n int64
		var part []byte
		switch kind, _, _ := strings.Cut(line, " "); kind {
		case "job":
			_, err = fmt.Sscanf(line, "job %s %s", &key, &id)
			jobs[key] = id
		case "file":
			if _, err = fmt.Sscanf(line, "file %s %d", &path, &n); err != nil {
				break
			}
			path = filepath.Join(dir, path)
			if err = os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				break
			}
			if file, err = os.Create(path); err == nil {
				defer file.Close()
				err = file.Truncate(n)
			}
		default:
			if _, err = fmt.Sscanf(line, "%d %x", &n, &part); err == nil {
				_, err = file.WriteAt(part, n)
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// TestOtherFormat: Open refuses complete files of another format and names them. It does not report
// damage or drop them as torn writes.
func TestOtherFormat(t *testing.T) {
	t.Parallel()
	w := writeState(t)
	segment, snapshot := w.names("*.wal")[0], filepath.Dir(w.names("snapshots/*/state.bin")[0])
	for name, change := range map[string]func(t *testing.T, dir string) error{
		segment + ": this build does not read its format, so start the build that wrote it: its codec is 9, not": func(_ *testing.T, dir string) error {
			state, err := loadMeta(dir)
			if err != nil {
				return err
			}
			state.Segments[0].Codec = 9
			data := bytes.Clone(w.files[segment])
			binary.LittleEndian.PutUint64(data[24:], 9) // the codec in the header
			if err := os.WriteFile(filepath.Join(dir, segment), data, 0o600); err != nil {
				return err
			}
			return withMeta(dir, func(db *metaStore) error { return db.BoltMetaDB.CommitState(state) })
		},
		snapshot + `/state.bin: this build does not read its format, so start the build that wrote it: it begins with "qrs9", not with "qrs1"`: func(t *testing.T, dir string) error {
			state, description := filepath.Join(dir, snapshot, "state.bin"), filepath.Join(dir, snapshot, "meta.json")
			data := bytes.Clone(w.files[snapshot+"/state.bin"])
			copy(data, "qrs9")
			var meta map[string]any
			if err := json.Unmarshal(w.files[snapshot+"/meta.json"], &meta); err != nil {
				return err
			}
			meta["CRC"] = binary.BigEndian.AppendUint64(nil, crc64.Checksum(data, crc64.MakeTable(crc64.ECMA)))
			text, err := json.Marshal(meta)
			return errors.Join(err, os.WriteFile(state, data, 0o600), os.WriteFile(description, text, 0o600))
		},
	} {
		cfg := w.restore(t)
		if err := change(t, cfg.Dir); err != nil {
			t.Fatal(err)
		}
		_, err := tryOpen(t, cfg)
		if err == nil || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("opened with %v, want %q", err, name)
		}
	}
}
