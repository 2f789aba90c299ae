package streaming

import (
	"slices"
	"testing"
)

// TestHome: with a home directory, inputs and outputs without a scheme are in its file system, and side files are local.
func TestHome(t *testing.T) {
	for _, c := range []struct{ home, name, want string }{
		{"", "x", "file:///dir/x"},
		{"", "/x", "file:///x"},
		{"hdfs://n:1/user/ann", "x/*.gz", "hdfs://n:1/user/ann/x/*.gz"},
		{"hdfs://n:1/user/ann", "/x/{a,b}", "hdfs://n:1/x/{a,b}"},
		{"hdfs://n:1/user/ann", "file:///x", "file:///x"},
		{"hdfs://n:1/user/ann", "hdfs:///x", "hdfs:///x"},
	} {
		j := &Job{Home: c.home, Inputs: []string{c.name}, Output: c.name, Mapper: "cat", MapOnly: true, Files: map[string]string{"f": "f"}}
		got, err := j.compile("/dir")
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if !slices.Equal(got.plan.Inputs[0].Paths, []string{c.want}) || got.plan.Output != c.want || got.plan.Files["f"] != "file:///dir/f" {
			t.Errorf("%+v: %v, %s, %v", c, got.plan.Inputs[0].Paths, got.plan.Output, got.plan.Files)
		}
	}
}
