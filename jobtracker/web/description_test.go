package web

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// object is a JSON object of the description.
type object = map[string]any

// describer makes the description of the routes. The texts about types and fields are the comments in
// the sources.
type describer struct {
	schemas  object
	comments map[string]string // of "Job" and "Job.State"
	enums    map[string][]string
	used     map[string]bool // names in enums
}

// fieldValues are the values of fields with text, by type and name in JSON.
func fieldValues() map[string][]string {
	phases, priorities := []string{wire.Map.String(), wire.Reduce.String()}, []string{}
	for p := wire.VeryLow; p <= wire.VeryHigh; p++ {
		priorities = append(priorities, p.String())
	}
	var levels, codes []string
	for l := wire.NodeLocal; l <= wire.Remote; l++ {
		levels = append(levels, l.String())
	}
	for _, k := range errorKinds() {
		codes = append(codes, k.code)
	}
	return map[string][]string{
		"Job.state": jobStates(), "History.state": jobStates(), "Explanation.state": jobStates(), "Attempt.state": attemptStates(), "Attempt.level": levels,
		"Phase.phase": phases, "PlannedPhase.phase": phases, "PhaseBreakdown.phase": phases, "LevelCount.level": levels, "WhatIfScheduler.scheduler": menu.Names(), "PastPlan.phase": phases, "Settings.priority": priorities, "Change.priority": priorities, "Problem.code": codes,
	}
}

// describeRoutes returns the OpenAPI document.
func describeRoutes(routes []route) ([]byte, error) {
	d := &describer{schemas: object{}, enums: fieldValues(), used: make(map[string]bool)}
	var err error
	if d.comments, err = comments("."); err != nil {
		return nil, err
	}
	paths := object{}
	for i := range routes {
		method, path, _ := strings.Cut(routes[i].pattern, " ")
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(method)] = d.operation(&routes[i])
	}
	document := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Quern", "version": "1",
			"description": "The API of Quern's job trackers. Any job tracker answers; if it does not lead and the request needs the leader, it answers 421 and names the leader. The API may change until the first release.",
		},
		"paths": paths, "components": object{
			"schemas":         d.schemas,
			"securitySchemes": object{"certificate": object{"type": "mutualTLS", "description": "A certificate of the cluster's authority, with a role and a name. A cluster that runs with -insecure takes none."}},
		},
		"security": []any{object{"certificate": []string{}}},
	}
	for name := range d.enums {
		if !d.used[name] {
			return nil, fmt.Errorf("no field %s has values", name)
		}
	}
	text, err := json.MarshalIndent(document, "", " ")
	return append(text, '\n'), err
}

func (d *describer) operation(x *route) object {
	words := strings.Fields(x.action)
	for i := range words[1:] {
		words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
	}
	status := "200"
	answer := object{"description": "Done."}
	switch kind, special := x.answer.(contentType); {
	case x.answer == nil:
		answer["content"] = object{jsonType: object{"schema": object{"type": "object", "maxProperties": 0}}}
	case special && kind == "":
		status, answer["description"] = "101", "The connection has another protocol from here on."
	case special && kind == eventsType:
		answer["description"] = "Events. x-events has the forms of their data, by name."
		answer["content"] = object{eventsType: object{"schema": object{"type": "string"}, "x-events": d.events()}}
	case special:
		answer["content"] = object{string(kind): object{"schema": object{"type": "object"}}}
	default:
		answer["content"] = object{jsonType: object{"schema": d.schema(reflect.TypeOf(x.answer), "")}}
	}
	problem := object{
		"description": "The request failed. 421: another job tracker leads. 429: a limit is exceeded for now.",
		"headers":     object{"Retry-After": object{"description": "With 429: the seconds after which to repeat the request.", "schema": object{"type": "integer"}}},
		"content":     object{problemType: object{"schema": d.schema(reflect.TypeFor[Error](), "")}},
	}
	var roles []string
	for _, role := range x.roles {
		roles = append(roles, string(role))
	}
	op := object{
		"operationId": strings.Join(words, ""), "summary": x.summary, "x-roles": roles, "x-users": string(x.rule),
		"responses": object{status: answer, "default": problem},
	}
	if list := d.parameters(x); len(list) > 0 {
		op["parameters"] = list
	}
	switch kind, special := x.body.(contentType); {
	case x.body == nil:
	case special:
		op["requestBody"] = object{"required": true, "content": object{string(kind): object{"schema": object{"type": "string", "contentEncoding": "binary"}}}}
	default:
		op["requestBody"] = object{"required": true, "content": object{jsonType: object{"schema": d.schema(reflect.TypeOf(x.body), "")}}}
	}
	return op
}

// events describes the data of server-sent events.
func (d *describer) events() object {
	all := object{}
	for name, t := range eventTypes() {
		all[name] = d.schema(t, "")
	}
	return all
}

func eventTypes() map[string]reflect.Type {
	return map[string]reflect.Type{
		eventLeader: reflect.TypeFor[LeaderEvent](), eventJobs: reflect.TypeFor[JobsEvent](),
		eventEnd: reflect.TypeFor[EndEvent](), eventProblem: reflect.TypeFor[Error](),
	}
}

func (d *describer) parameters(x *route) (all []any) {
	if strings.Contains(x.pattern, "{id}") {
		text := "id of a job"
		if x.rule == admins {
			text = "id of a job tracker"
		}
		all = append(all, object{"name": "id", "in": "path", "required": true, "description": text, "schema": object{"type": "string"}})
	}
	for _, p := range x.query {
		schema := object{"type": "string"}
		if p.values != nil {
			schema["enum"] = p.values()
		}
		if p.format != "" {
			schema["format"] = p.format
		}
		if p.repeats {
			schema = object{"type": "array", "items": schema}
		}
		all = append(all, object{"name": p.name, "in": "query", "description": p.text, "schema": schema})
	}
	return all
}

// schema describes a Go type as encoding/json encodes it. field is the name of the field that has the type, if any.
func (d *describer) schema(t reflect.Type, field string) object {
	if t == reflect.TypeFor[time.Time]() {
		return object{"type": "string", "format": "date-time"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem(), field)
	case reflect.String:
		if values := d.enums[field]; values != nil {
			d.used[field] = true
			return object{"type": "string", "enum": values}
		}
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return object{"type": "number", "format": "double"}
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem(), field)}
	case reflect.Array:
		return object{"type": "array", "items": d.schema(t.Elem(), field), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem(), field)}
	case reflect.Struct:
		name := schemaName(t)
		if d.schemas[name] == nil {
			d.schemas[name] = object{} // a type may contain itself
			d.schemas[name] = d.object(t, name)
		}
		return object{"$ref": "#/components/schemas/" + name}
	}
	panic(fmt.Sprintf("no schema describes a %v", t))
}

// object describes a struct. A field without omitempty or omitzero is required, so it may be no pointer, which
// could be null. Code must not leave such a list nil.
func (d *describer) object(t reflect.Type, name string) object {
	properties, required := object{}, []string{}
	for _, f := range jsonFields(t) {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		schema := d.schema(f.Type, name+"."+key)
		if text := d.comments[f.Name]; text != "" {
			schema["description"] = text
		}
		properties[key] = schema
		switch {
		case options != "":
		case f.Type.Kind() == reflect.Pointer:
			panic(fmt.Sprintf("%v.%s may be null: give it omitempty", t, f.Name))
		default:
			required = append(required, key)
		}
	}
	schema := object{"type": "object", "properties": properties}
	if text := d.comments[baseName(t)]; text != "" {
		schema["description"] = text
	}
	if len(required) > 0 {
		slices.Sort(required)
		schema["required"] = required
	}
	return schema
}

// jsonFields returns the fields of a struct and of the structs that it embeds. Their Name has the type, as in
// describer.comments. An outer field hides an embedded one with the same name in JSON.
func jsonFields(t reflect.Type) (all []reflect.StructField) {
	var embedded []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			embedded = append(embedded, jsonFields(f.Type)...)
			continue
		}
		f.Name = baseName(t) + "." + f.Name
		all = append(all, f)
	}
	key := func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	}
	for _, f := range embedded {
		if !slices.ContainsFunc(all, func(outer reflect.StructField) bool { return key(outer) == key(f) }) {
			all = append(all, f)
		}
	}
	return all
}

// baseName is the name of a type in its source.
func baseName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

// schemaName is the name of a type in the description: Error is Problem, Page[Job] is JobPage.
func schemaName(t reflect.Type) string {
	name, of, generic := strings.Cut(t.Name(), "[")
	switch {
	case generic:
		return strings.TrimSuffix(of[strings.LastIndexAny(of, "./")+1:], "]") + name
	case t == reflect.TypeFor[Error]():
		return "Problem"
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// comments returns the comments of types and fields in the sources of a directory.
func comments(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	all := make(map[string]string)
	note := func(name string, groups ...*ast.CommentGroup) {
		for _, g := range groups {
			if text := strings.Join(strings.Fields(g.Text()), " "); text != "" && all[name] == "" {
				all[name] = text
			}
		}
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				if len(n.Specs) == 1 {
					if s, ok := n.Specs[0].(*ast.TypeSpec); ok {
						note(s.Name.Name, s.Doc, n.Doc)
					}
				}
			case *ast.TypeSpec:
				note(n.Name.Name, n.Doc)
				if s, ok := n.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						for _, name := range f.Names {
							note(n.Name.Name+"."+name.Name, f.Doc, f.Comment)
						}
					}
				}
			}
			return true
		})
	}
	return all, nil
}

// rewriting reports whether the test rewrites its files.
func rewriting() bool {
	f := flag.Lookup("rewrite") // of package datadriven
	return f != nil && f.Value.String() == "true"
}

// compareFile compares a file with its generated text, or rewrites it.
func compareFile(file string, text []byte) error {
	if rewriting() {
		return os.WriteFile(file, text, 0o644)
	}
	old, err := os.ReadFile(file)
	if err == nil && string(old) != string(text) {
		err = fmt.Errorf("it differs from the route table: run go test ./jobtracker/web -rewrite, and read the difference")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
