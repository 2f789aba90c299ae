package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/sv-tools/openapi"
)

// TestDescription: openapi.json is valid and describes exactly the routes, see also checkAnswer.
func TestDescription(t *testing.T) {
	text, err := describeRoutes(new(handler).routes())
	if err != nil {
		t.Fatal(err)
	}
	if err := compareFile("openapi.json", text); err != nil {
		t.Error(err)
	}
	spec := new(openapi.Extendable[openapi.OpenAPI])
	if err := json.Unmarshal(text, spec); err != nil {
		t.Fatal(err)
	}
	v, err := openapi.NewValidator(spec, openapi.AllowUnusedComponents()) // events use some
	if err != nil {
		t.Fatal(err)
	}
	if err := v.ValidateSpec(); err != nil {
		t.Errorf("openapi.json is not valid: %v", err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Roles       []string
		}
	}
	if err := json.Unmarshal(description, &document); err != nil {
		t.Fatal(err)
	}
	var described, served, ids []string
	for path, methods := range document.Paths {
		for method, x := range methods {
			described, ids = append(described, strings.ToUpper(method)+" "+path), append(ids, x.OperationID)
		}
	}
	for _, r := range new(handler).routes() {
		served = append(served, r.pattern)
	}
	slices.Sort(described)
	slices.Sort(served)
	slices.Sort(ids)
	if !slices.Equal(described, served) {
		t.Errorf("described %q\nserved    %q", described, served)
	}
	if n := len(ids); len(slices.Compact(ids)) != n {
		t.Errorf("operations do not have different ids: %q", ids)
	}
}

// answers compiles the schemas of the description. They refuse members that the description does not have.
var answers = sync.OnceValue(func() *schemas {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(description))
	if err != nil {
		panic(err)
	}
	closeObjects(document)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("api.json", document); err != nil {
		panic(err)
	}
	return &schemas{compiler: c}
})

type schemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

func closeObjects(v any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			closeObjects(x)
		}
	case map[string]any:
		if v["properties"] != nil && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, x := range v {
			closeObjects(x)
		}
	}
}

// check compares JSON with the schema at a path of names in the description.
func (s *schemas) check(text []byte, path ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	location := "api.json#"
	for _, name := range path {
		name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		location += "/" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(name)
	}
	schema, err := s.compiler.Compile(location)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// checkAnswer compares an answer with the description of its route.
func checkAnswer(t *testing.T, method, path string, status int, header http.Header, body []byte) {
	t.Helper()
	kind := header.Get("Content-Type")
	if status != http.StatusOK {
		if kind != problemType {
			t.Errorf("%s %s: %d has the content type %s", method, path, status, kind)
		}
		if err := answers().check(body, "components", "schemas", "Problem"); err != nil {
			t.Errorf("%s %s: %s\n%v", method, path, body, err)
		}
		p := new(Error)
		if err := json.Unmarshal(body, p); err != nil || p.Status != status || p.Type != problemPage+p.Code || p.Title == "" {
			t.Errorf("%s %s: %d %s", method, path, status, body)
		}
		return
	}
	pattern := patternOf(method, path)
	if pattern == "" {
		t.Errorf("%s %s is served, but has no route", method, path)
		return
	}
	_, path, _ = strings.Cut(pattern, " ")
	if err := answers().check(body, "paths", path, strings.ToLower(method), "responses", "200", "content", kind, "schema"); err != nil {
		t.Errorf("%s: %s\n%v", pattern, body, err)
	}
}

// patternOf returns the pattern of a request's route; empty: there is none.
func patternOf(method, path string) string {
	path, _, _ = strings.Cut(path, "?")
	asked := strings.Split(method+" "+path, "/")
	for _, x := range new(handler).routes() {
		parts := strings.Split(x.pattern, "/")
		same := len(parts) == len(asked)
		for i := range parts {
			same = same && (parts[i] == asked[i] || strings.HasPrefix(parts[i], "{"))
		}
		if same {
			return x.pattern
		}
	}
	return ""
}
