// Package hadoopconf reads Hadoop's configuration files: XML with an element <configuration> of <property> elements,
// each with <name>, <value> and perhaps <final>, as elements or as attributes. XInclude's <include href="FILE"> stands
// for the properties of another file, relative to the one that names it; its <fallback> counts if that file is missing.
package hadoopconf

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
)

// Property is a property of a file. A final one must not be changed by files that are read later.
type Property struct {
	Name, Value string // the value as it is in the file, with blanks and variables
	Final       bool
}

const (
	maxBytes = 16 << 20 // of a file
	maxDepth = 20       // of files that include each other
)

// Read reads a file, and those that it includes. If the file itself is missing, the error wraps [fs.ErrNotExist].
func Read(name string) ([]Property, error) { return read(name, 0) }

type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []element  `xml:",any"`
}

func read(name string, depth int) ([]Property, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var root element
	switch err := xml.NewDecoder(io.LimitReader(f, maxBytes)).Decode(&root); {
	case errors.Is(err, io.EOF) || err == nil && root.XMLName.Local != "configuration":
		return nil, fmt.Errorf("%s: no configuration of Hadoop: it has no element <configuration>", name)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return properties(name, root.Children, depth)
}

// properties returns the properties among elements of a file.
func properties(name string, elements []element, depth int) (list []Property, err error) {
	for i := range elements {
		var more []Property
		switch e := &elements[i]; e.XMLName.Local {
		case "property":
			more = []Property{e.property()}
		case "configuration":
			more, err = properties(name, e.Children, depth)
		case "include":
			more, err = e.include(name, depth)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

func (e *element) property() (p Property) {
	set := func(name, text string) {
		switch name {
		case "name":
			p.Name = strings.TrimSpace(text)
		case "value":
			p.Value = text
		case "final":
			p.Final = strings.EqualFold(strings.TrimSpace(text), "true")
		}
	}
	for _, a := range e.Attrs {
		set(a.Name.Local, a.Value)
	}
	for _, c := range e.Children {
		set(c.XMLName.Local, c.Text)
	}
	return p
}

func (e *element) include(from string, depth int) ([]Property, error) {
	href := ""
	for _, a := range e.Attrs {
		if a.Name.Local == "href" {
			href = a.Value
		}
	}
	name := strings.TrimPrefix(href, "file://")
	switch {
	case name == "":
		return nil, fmt.Errorf("%s: an <include> has no href", from)
	case strings.Contains(name, "://"):
		return nil, fmt.Errorf("%s: include of %s: only files can be included", from, href)
	case depth == maxDepth:
		return nil, fmt.Errorf("%s: include of %s: files include each other more than %d deep", from, href, maxDepth)
	case !filepath.IsAbs(name):
		name = filepath.Join(filepath.Dir(from), name)
	}
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		for _, c := range e.Children {
			if c.XMLName.Local == "fallback" {
				return properties(from, c.Children, depth)
			}
		}
		// The text hides fs.ErrNotExist, which would mean that from is missing.
		return nil, fmt.Errorf("%s: include of %s: no such file, and no <fallback>", from, name)
	}
	return read(name, depth+1)
}

// Files has the properties of several files. A file that is added later wins, except over final properties.
type Files struct {
	Current func(name string) string // the current name of a property that Hadoop has renamed; nil: none is
	Values  map[string]string        // by current names

	final map[string]string // the files that declare properties final
}

// Add adds the properties of a file. It returns a note about each that has no effect.
func (f *Files) Add(file string, all []Property) (notes []string) {
	if f.Values == nil {
		f.Values, f.final = make(map[string]string), make(map[string]string)
	}
	for _, p := range all {
		if p.Name == "" {
			continue
		}
		if f.Current != nil {
			p.Name = f.Current(p.Name)
		}
		if first := f.final[p.Name]; first != "" {
			notes = append(notes, fmt.Sprintf("property %s of %s has no effect: it is final in %s", p.Name, file, first))
			continue
		}
		f.Values[p.Name] = p.Value
		if p.Final {
			f.final[p.Name] = file
		}
	}
	return notes
}

var variable = regexp.MustCompile(`\$\{[^{}$\s]+\}`)

// maxExpansions is Hadoop's own limit of variables in one value.
const maxExpansions = 20

// Expand replaces ${NAME} in a value by the property of that name, ${env.NAME} by a variable of the environment, and
// ${user.name} and ${user.home} as Java does. From an unknown name on, the value stays as it is.
func Expand(value string, property func(name string) (string, bool)) string {
	for range maxExpansions {
		at := variable.FindStringIndex(value)
		if at == nil {
			break
		}
		inner := value[at[0]+2 : at[1]-1]
		replacement, found := system(inner)
		if !found {
			replacement, found = property(inner)
		}
		if !found {
			break
		}
		value = value[:at[0]] + replacement + value[at[1]:]
	}
	return value
}

func system(name string) (value string, found bool) {
	if env, ok := strings.CutPrefix(name, "env."); ok {
		return os.LookupEnv(env)
	}
	if name != "user.name" && name != "user.home" {
		return "", false
	}
	u, err := user.Current()
	switch {
	case err != nil:
		return "", false
	case name == "user.name":
		return u.Username, true
	}
	return u.HomeDir, true
}
