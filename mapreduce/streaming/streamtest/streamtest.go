// Package streamtest reads and writes cases of Hadoop Streaming: a command line, the files that it reads, and what Hadoop
// made of it. The recorded results come from Hadoop itself; see the check streaming of integration/compat.
//
// A case is a text. Lines that begin with # come first. Then follow sections:
//
//	== args           one argument in each line
//	== file NAME      a file in the working directory
//	== script NAME    the same, executable
//	== exit           the exit code
//	== out NAME       a file of the directory out
//
// Each line of a section ends with a line feed. A line with a backslash is the body of a string in Go. A last line \end
// takes away the line feed before it.
package streamtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Output is the directory that a case writes.
const Output = "out"

// Case is one case.
type Case struct {
	Comment string
	Args    []string
	Files   []File
	Exit    int
	Out     []File // sorted by name
}

// File is a file of a case.
type File struct {
	Name       string
	Content    string
	Executable bool
}

const end = `\end`

// Parse parses a case.
func Parse(text string) (*Case, error) {
	c := new(Case)
	comment, sections, _ := strings.Cut("\n"+strings.TrimSuffix(text, "\n"), "\n== ")
	c.Comment = strings.TrimPrefix(comment, "\n")
	if sections == "" {
		return nil, fmt.Errorf("the case has no sections")
	}
	for _, section := range strings.Split(sections, "\n== ") {
		head, body, filled := strings.Cut(section, "\n")
		kind, name, _ := strings.Cut(head, " ")
		content := ""
		if filled {
			var err error
			if content, err = decode(body); err != nil {
				return nil, fmt.Errorf("section %s: %w", head, err)
			}
		}
		switch kind {
		case "args":
			c.Args = strings.Split(strings.TrimSuffix(content, "\n"), "\n")
		case "file", "script":
			c.Files = append(c.Files, File{name, content, kind == "script"})
		case "exit":
			var err error
			if c.Exit, err = strconv.Atoi(strings.TrimSpace(content)); err != nil {
				return nil, fmt.Errorf("section exit: %w", err)
			}
		case "out":
			c.Out = append(c.Out, File{Name: name, Content: content})
		default:
			return nil, fmt.Errorf("unknown section %s", head)
		}
	}
	return c, nil
}

func decode(body string) (string, error) {
	lines := strings.Split(body, "\n")
	var text strings.Builder
	for i, line := range lines {
		if line == end && i == len(lines)-1 {
			return strings.TrimSuffix(text.String(), "\n"), nil
		}
		if strings.Contains(line, `\`) {
			plain, err := strconv.Unquote(`"` + line + `"`)
			if err != nil {
				return "", fmt.Errorf("line %q: %w", line, err)
			}
			line = plain
		}
		text.WriteString(line + "\n")
	}
	return text.String(), nil
}

func encode(content string) string {
	var text strings.Builder
	for line := range strings.Lines(content) {
		line, ended := strings.CutSuffix(line, "\n")
		plain := utf8.ValidString(line) && !strings.HasPrefix(line, "== ")
		for _, r := range line {
			plain = plain && r != '\\' && (r >= ' ' || r == '\t')
		}
		if !plain {
			quoted := strconv.Quote(line)
			if line = quoted[1 : len(quoted)-1]; strings.HasPrefix(line, "==") {
				line = `\x3d` + line[1:]
			}
		}
		text.WriteString(line + "\n")
		if !ended {
			text.WriteString(end + "\n")
		}
	}
	return text.String()
}

// String is the inverse of Parse.
func (c *Case) String() string {
	var text strings.Builder
	text.WriteString(c.Comment)
	section := func(head, content string) {
		if text.Len() > 0 && !strings.HasSuffix(text.String(), "\n") {
			text.WriteByte('\n')
		}
		text.WriteString("== " + head + "\n" + encode(content))
	}
	section("args", strings.Join(c.Args, "\n")+"\n")
	for _, f := range c.Files {
		kind := "file "
		if f.Executable {
			kind = "script "
		}
		section(kind+f.Name, f.Content)
	}
	section("exit", strconv.Itoa(c.Exit)+"\n")
	for _, f := range c.Out {
		section("out "+f.Name, f.Content)
	}
	return text.String()
}

// Write writes the files of the case into a directory.
func (c *Case) Write(dir string) error {
	for _, f := range c.Files {
		mode := os.FileMode(0o666)
		if f.Executable {
			mode = 0o777
		}
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.Content), mode); err != nil {
			return err
		}
	}
	return nil
}

// withoutSync replaces the random mark of an uncompressed SequenceFile by zeros.
func withoutSync(content []byte) []byte {
	const names, mark = 4, 16 // the classes' names follow the version; all lengths are single bytes
	if !bytes.HasPrefix(content, []byte("SEQ\x06")) {
		return content
	}
	at := names
	for range 2 {
		at += 1 + int(content[min(at, len(content)-1)])
	}
	if at += 2 + 4; at+mark > len(content) || content[at-6] != 0 { // flags of compression, number of metadata
		return content
	}
	return bytes.ReplaceAll(content, bytes.Clone(content[at:at+mark]), make([]byte, mark))
}

// Read returns the files that were written into the directory out below dir. It leaves out checksums, and files that were
// there before. The random marks of SequenceFiles are zeros.
func (c *Case) Read(dir string) (files []File, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, Output))
	if err != nil {
		if os.IsNotExist(err) {
			err = nil
		}
		return nil, err
	}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || entry.IsDir() || slices.ContainsFunc(c.Files, func(f File) bool { return f.Name == Output+"/"+name }) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, Output, name))
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: name, Content: string(withoutSync(content))})
	}
	return files, nil
}
