package container

import (
	"encoding/json"
	"fmt"
	"strings"
)

// schema is what is needed to decode values.
type schema struct {
	kind     string // a name of Avro, or union
	name     string // full name, if it has one
	fields   []field
	items    *schema // of array and map
	branches []*schema
	symbols  []string
	size     int
}

type field struct {
	name   string
	schema *schema
}

// title names a branch of a union.
func (s *schema) title() string {
	if s.name != "" {
		return s.name
	}
	return s.kind
}

func parseSchema(text []byte) (*schema, error) {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	return make(names).schema(v, "")
}

// names are the types with names, by their full names.
type names map[string]*schema

// schema returns the schema of a JSON value within a namespace.
func (n names) schema(v any, space string) (*schema, error) {
	switch v := v.(type) {
	case string:
		return n.named(v, space)
	case []any:
		s := &schema{kind: "union"}
		for _, b := range v {
			one, err := n.schema(b, space)
			if err != nil {
				return nil, err
			}
			s.branches = append(s.branches, one)
		}
		return s, nil
	case map[string]any:
		return n.object(v, space)
	}
	return nil, fmt.Errorf("%v is no type", v)
}

// named returns a primitive type, or one that was defined before.
func (n names) named(name, space string) (*schema, error) {
	switch name {
	case "null", "boolean", "int", "long", "float", "double", "bytes", "string":
		return &schema{kind: name}, nil
	}
	for _, full := range []string{fullName(name, space), name} {
		if s := n[full]; s != nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("type %.80q is not defined", name)
}

func fullName(name, space string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

func (n names) object(v map[string]any, space string) (*schema, error) {
	kind, ok := v["type"].(string)
	if !ok {
		return n.schema(v["type"], space)
	}
	s := &schema{kind: kind}
	var err error
	switch kind {
	case "array":
		s.items, err = n.schema(v["items"], space)
		return s, err
	case "map":
		s.items, err = n.schema(v["values"], space)
		return s, err
	case "record", "error", "enum", "fixed":
	default:
		return n.named(kind, space)
	}
	name, _ := v["name"].(string)
	if of, ok := v["namespace"].(string); ok {
		space = of
	}
	s.name = fullName(name, space)
	if name == "" || n[s.name] != nil {
		return nil, fmt.Errorf("the name %.80q of a type is missing or defined twice", s.name)
	}
	n[s.name] = s
	return s, n.define(s, v, s.name[:max(strings.LastIndexByte(s.name, '.'), 0)])
}

// define sets what a type with a name has.
func (n names) define(s *schema, v map[string]any, space string) error {
	switch s.kind {
	case "fixed":
		size, ok := v["size"].(float64)
		if s.size = int(size); !ok || size < 0 || size > maxHeader*64 {
			return fmt.Errorf("fixed type %.80q has the size %v", s.name, v["size"])
		}
	case "enum":
		symbols, _ := v["symbols"].([]any)
		for _, symbol := range symbols {
			s.symbols = append(s.symbols, fmt.Sprint(symbol))
		}
	default:
		s.kind = "record" // also error
		fields, ok := v["fields"].([]any)
		if !ok {
			return fmt.Errorf("record %.80q has no fields", s.name)
		}
		for _, of := range fields {
			f, _ := of.(map[string]any)
			name, _ := f["name"].(string)
			one, err := n.schema(f["type"], space)
			if err != nil {
				return fmt.Errorf("field %.80q of %.80q: %w", name, s.name, err)
			}
			s.fields = append(s.fields, field{name, one})
		}
	}
	return nil
}
