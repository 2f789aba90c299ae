package mapreduce

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quernmr/quern/wire"
)

// maxJobName limits the bytes of a job's or output's name. A file name has at most 255
// bytes, and it also contains the task's number.
const maxJobName = 200

// checkName refuses names that cannot be directories in the output, or would be hidden.
func checkName(kind, name string) error {
	if name == "" {
		return fmt.Errorf("a %s has no name", kind)
	}
	if strings.ContainsAny(name, "/\\\x00\n\t*?[]{},") || name[0] == '_' || name[0] == '.' {
		return fmt.Errorf("a %s cannot be named %q: a name has no slash, backslash, comma, tab, newline or any of *?[]{}, and its first character is neither _ nor a dot", kind, name)
	}
	if len(name) > maxJobName {
		return fmt.Errorf("a %s's name %.40s… is too long: it has %d bytes, at most %d", kind, name, len(name), maxJobName)
	}
	return nil
}

func checkFormatName(f Format) error {
	switch f.(type) {
	case Text, Raw, Binary:
		return nil
	}
	switch name := f.Name(); name {
	case "", Text{}.Name(), Raw{}.Name(), Raw{Keys: true}.Name(), Binary{}.Name():
		return fmt.Errorf("its format is named %q: the name is empty or built in", name)
	}
	return nil
}

func checkNamedOutputs(names []string) error {
	seen := make(map[string]bool)
	for _, name := range names {
		invalid := strings.ContainsFunc(name, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
		})
		switch {
		case name == "" || name == "part" || invalid:
			return fmt.Errorf("Job.Outputs: an output cannot be named %q: letters and digits only, and not part", name)
		case len(name) > maxJobName:
			return fmt.Errorf("Job.Outputs: the name %.40s… is too long: it has %d bytes, at most %d", name, len(name), maxJobName)
		case seen[name]:
			return fmt.Errorf("Job.Outputs names %q twice", name)
		}
		seen[name] = true
	}
	return nil
}

// checkOutputs refuses jobs that would write into each other's output. It also refuses
// a job that reads another's output by its path: it would not wait for that job.
func checkOutputs(jobs []wire.JobPlan) error {
	for i := range jobs {
		writer := &jobs[i]
		if writer.Output == "" {
			continue
		}
		for k := range jobs[:i] {
			if err := checkApart(&jobs[k], writer); err != nil {
				return err
			}
		}
		for k := range jobs {
			if k == i {
				continue // refused elsewhere, because the output exists
			}
			if p, reads := readsWithin(&jobs[k], writer.Output); reads {
				return fmt.Errorf("job %s reads %s, which job %s writes: read another job's result with From", jobs[k].Name, p, writer.Name)
			}
		}
	}
	return nil
}

// checkApart refuses two jobs with one output, or with one output inside the other.
func checkApart(a, b *wire.JobPlan) error {
	switch {
	case a.Output == "":
		return nil
	case a.Output == b.Output:
		return fmt.Errorf("jobs %s and %s have the same output: %s", a.Name, b.Name, a.Output)
	case inside(a.Output, b.Output) || inside(b.Output, a.Output):
		return fmt.Errorf("one output of jobs %s and %s is inside the other: %s, %s", a.Name, b.Name, a.Output, b.Output)
	}
	return nil
}

// readsWithin returns the first input path of a job that is dir or inside dir.
func readsWithin(job *wire.JobPlan, dir string) (string, bool) {
	for _, in := range job.Inputs {
		for _, p := range in.Paths {
			if p == dir || inside(p, dir) {
				return p, true
			}
		}
	}
	return "", false
}

func inside(p, dir string) bool { return strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") }

// distinctErrors drops joined errors that repeat the cause of an earlier error: a key
// type without encoding is often the result type too.
func distinctErrors(err error) error {
	var distinct []error
	seen := make(map[string]bool)
	var take func(err error)
	take = func(err error) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				take(e)
			}
			return
		}
		root := err
		for inner := errors.Unwrap(root); inner != nil; inner = errors.Unwrap(root) {
			root = inner
		}
		if text := root.Error(); !seen[text] {
			seen[text] = true
			distinct = append(distinct, err)
		}
	}
	if err != nil {
		take(err)
	}
	return errors.Join(distinct...)
}
