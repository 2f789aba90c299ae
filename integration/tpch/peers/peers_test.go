package peers

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestGenerate: tables are generated once, and never partly.
func TestGenerate(t *testing.T) {
	p, dir := &Peer{dir: t.TempDir()}, filepath.Join(t.TempDir(), "tables")
	generator := func(script string) {
		if err := errors.Join(os.MkdirAll(filepath.Join(p.dir, "bin"), 0o777),
			os.WriteFile(p.Program("tpchgen-cli"), []byte("#!/bin/sh\nset -e\nmkdir \"$5\"\n"+script), 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	generator(`echo '0|AF' > "$5/region.tbl"; echo '0|KE' > "$5/nation.tbl"; exit 1`)
	if err := p.Generate(t.Context(), dir, "0.01", 1); err == nil {
		t.Error("no error though the generator fails")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s after a failure: %v", dir, err)
	}
	generator(`echo '0|AFRICA|' > "$5/region.tbl"`)
	for range 2 { // the second call does not run the generator
		if err := p.Generate(t.Context(), dir, "0.01", 1); err != nil {
			t.Fatal(err)
		}
		generator("exit 1")
	}
	if content, err := os.ReadFile(filepath.Join(dir, "region.tbl")); string(content) != "0|AFRICA|\n" {
		t.Errorf("%q, %v", content, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "nation.tbl")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a table of the failed generator is left: %v", err)
	}
}
