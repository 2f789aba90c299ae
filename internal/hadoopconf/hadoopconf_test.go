package hadoopconf

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	const head = `<configuration xmlns:xi="http://www.w3.org/2001/XInclude">`
	for _, c := range []struct {
		name, text string
		want       []Property
		err        string // a piece
	}{
		{"properties", `<?xml version="1.0"?>` + head + `<!-- c --><property><name> a </name><value>1 </value><final> TRUE</final></property>` +
			`<property name="b" value="2"/><configuration><property><name>c</name><value/></property></configuration></configuration>`,
			[]Property{{"a", "1 ", true}, {"b", "2", false}, {"c", "", false}}, ""},
		{"include", head + `<xi:include href="other.xml"/><property name="z" value="1"/></configuration>`, []Property{{"o", "7", false}, {"z", "1", false}}, ""},
		{"fallback", head + `<xi:include href="gone.xml"><xi:fallback><property name="f" value="1"/></xi:fallback></xi:include></configuration>`, []Property{{"f", "1", false}}, ""},
		{"empty fallback", head + `<xi:include href="gone.xml"><xi:fallback/></xi:include></configuration>`, nil, ""},
		{"missing", head + `<xi:include href="gone.xml"/></configuration>`, nil, "gone.xml: no such file, and no <fallback>"},
		{"no href", head + `<xi:include/></configuration>`, nil, "an <include> has no href"},
		{"URL", head + `<xi:include href="http://h/x.xml"/></configuration>`, nil, "only files can be included"},
		{"itself", head + `<xi:include href="conf.xml"/></configuration>`, nil, "more than 20 deep"},
		{"text", "mapred.reduce.tasks=3\n", nil, "it has no element <configuration>"},
		{"other XML", "<properties/>", nil, "it has no element <configuration>"},
		{"torn", head + "<prop", nil, "conf.xml: XML syntax error"},
		{"empty", "", nil, "it has no element <configuration>"},
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, "conf.xml")
		for file, text := range map[string]string{name: c.text, filepath.Join(dir, "other.xml"): `<configuration><property name="o" value="7"/></configuration>`} {
			if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Read(name)
		if !slices.Equal(got, c.want) || (err != nil) != (c.err != "") || err != nil && (!strings.Contains(err.Error(), c.err) || errors.Is(err, fs.ErrNotExist)) {
			t.Errorf("%s: %v, %v; want %v, %q", c.name, got, err, c.want, c.err)
		}
	}
	if _, err := Read("none.xml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestExpand(t *testing.T) {
	t.Setenv("QUERN_X", "env")
	all := map[string]string{"a": "1", "b": "${a}2", "loop": "${loop}"}
	property := func(name string) (string, bool) {
		value, ok := all[name]
		return value, ok
	}
	for value, want := range map[string]string{
		"": "", "$a ${}": "$a ${}", "${a}-${b}": "1-12", "${env.QUERN_X}": "env", "${none}${a}": "${none}${a}", "${loop}": "${loop}",
	} {
		if got := Expand(value, property); got != want {
			t.Errorf("%q becomes %q, want %q", value, got, want)
		}
	}
	if got := Expand("${user.name}", property); got == "${user.name}" {
		t.Error("user.name is unknown")
	}
}

// TestFiles: later files win under all names of a property, except over final properties.
func TestFiles(t *testing.T) {
	f := Files{Current: func(name string) string { return strings.TrimPrefix(name, "old.") }}
	notes := f.Add("a", []Property{{"old.x", "1", true}, {"y", "1", false}, {"", "1", true}})
	notes = append(notes, f.Add("b", []Property{{"x", "2", false}, {"old.y", "2", false}, {"", "2", false}})...)
	if want := map[string]string{"x": "1", "y": "2"}; !maps.Equal(f.Values, want) || !slices.Equal(notes, []string{"property x of b has no effect: it is final in a"}) {
		t.Errorf("%q, %q", f.Values, notes)
	}
}
