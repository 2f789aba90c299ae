package dfs

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestNames: a name means what it means to Hadoop 3.4.2's Path, but that one without a
// scheme is always a local file.
func TestNames(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	m := Mux{"file": Mux{}, "hdfs": Mux{}}
	for name, want := range map[string]string{ // an error's words, behind !
		"hdfs:/user/x":      "hdfs:///user/x",
		"hdfs:///user/x":    "hdfs:///user/x",
		"hdfs:////user//x/": "hdfs:///user/x",
		"hdfs://nn:8020/x":  "hdfs://nn:8020/x",
		"hdfs://nn":         "hdfs://nn/",
		"hdfs:/":            "hdfs:///",
		"hdfs:/a:b":         "hdfs:///a:b",
		"file:/p":           "file:///p",
		"file:///p":         "file:///p",
		"file:/p/../q":      "file:///q",
		"/p":                "file:///p",
		"/a:b":              "file:///a:b",
		"/x/hdfs:/y":        "file:///x/hdfs:/y",
		"./a:b":             "file://" + here + "/a:b",
		"./hdfs:/y":         "file://" + here + "/hdfs:/y",
		"a/b:c":             "file://" + here + "/a/b:c",
		"p":                 "file://" + here + "/p",

		"hdfs:user/x": "! ./hdfs:user/x",
		"file:p":      "! ./file:p",
		"hdfs:":       "! ./hdfs:",
		"a:b":         "! ./a:b",
		"a:b/c":       "! ./a:b/c",
		"2024:01":     "! ./2024:01",
		":x":          "! ./:x",
		":/x":         "! ./:/x",
		"1a:/x":       "! ./1a:/x",
		"x y:/z":      "! ./x y:/z",
		"{a:/b,c}":    "! ./{a:/b,c}",
		"{a:b,c}":     "! ./{a:b,c}",
		"a\x00":       "! invalid",
		"":            "! empty",

		"foo:/x":     `! unknown file system "foo://"`,
		"foo:///x":   `! unknown file system "foo://"`,
		"s3a://b/x":  `! unknown file system "s3a://"`,
		"viewfs:/x":  `! unknown file system "viewfs://"`,
		"HDFS:/x":    `! unknown file system "HDFS://"`,
		"c:/windows": `! unknown file system "c://"`,
	} {
		got, err := m.Clean(name)
		if words, refused := strings.CutPrefix(want, "! "); refused {
			if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(words, "unknown") != errors.Is(err, ErrUnknownScheme) {
				t.Errorf("%q: %q, %v; want an error: %s", name, got, err, words)
			}
			continue
		}
		if again, _ := Clean(got); got != want || err != nil || again != want {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
}
