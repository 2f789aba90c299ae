// Package peers generates TPC-H's tables and runs TPC-H's queries in other programs: DuckDB, the
// reference, and Spark. It installs them from Python's package index into virtual environments in
// the project's cache.
package peers

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Queries returns the numbers of the queries with SQL.
func Queries() []int { return []int{1, 3, 5, 6, 10, 13} }

//go:embed answer.py
var script string

//go:embed schema.json
var schema string

//go:embed sql
var statements embed.FS

// Peer is a program that answers queries.
type Peer struct {
	Name     string
	Packages []string // with their versions: duckdb==2.0.0
	dir      string   // of its virtual environment
}

// Answer is the answer to a query.
type Answer struct {
	Lines string        // rows, with '|' between columns
	Whole time.Duration // the process, from its start to its end
	Query time.Duration // the query alone, as answer.py measures it
}

// Ask runs a query over a directory of tables, in a separate process.
func (p *Peer) Ask(ctx context.Context, tables string, query, cores int) (*Answer, error) {
	sql, err := statements.ReadFile(fmt.Sprintf("sql/%d.sql", query))
	if err != nil {
		return nil, err
	}
	a, err := p.Query(ctx, tables, string(sql), cores)
	if err != nil {
		return nil, fmt.Errorf("query %d: %w", query, err)
	}
	return a, nil
}

// Query runs any statements, as Ask does. The answer is that of the last one.
func (p *Peer) Query(ctx context.Context, tables, sql string, cores int) (*Answer, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, p.Program("python"), "-c", script, p.Name, tables, schema, sql)
	cmd.Env = append(os.Environ(), "PEER_CORES="+strconv.Itoa(cores))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", p.Name, err, stderr.Bytes())
	}
	a := &Answer{Lines: stdout.String(), Whole: time.Since(began)}
	printed := strings.TrimSpace(stderr.String())
	took, err := time.ParseDuration(printed[strings.LastIndexByte(printed, ' ')+1:] + "s")
	if err != nil {
		return nil, fmt.Errorf("%s: read its time: %w", p.Name, err)
	}
	a.Query = took
	return a, nil
}

// Generate writes the tables of a scale, such as "0.01", into a directory, unless the directory
// exists. A table is <table>.tbl or, if parts is more than 1, that many files <table>/*.tbl. After
// a failure or an interrupt, the directory does not exist.
func (p *Peer) Generate(ctx context.Context, dir, scale string, parts int) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temporary := dir + ".new"
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	args := []string{"tbl", "--scale-factor", scale, "--output-dir", temporary, "--tables", "region,nation,supplier,customer,orders,lineitem"}
	if parts > 1 {
		args = append(args, "--parts", strconv.Itoa(parts))
	}
	if out, err := exec.CommandContext(ctx, p.Program("tpchgen-cli"), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("generate tables of scale %s: %w\n%s", scale, err, out)
	}
	return os.Rename(temporary, dir)
}

// Program returns the path of a program of its virtual environment.
func (p *Peer) Program(name string) string { return filepath.Join(p.dir, "bin", name) }
