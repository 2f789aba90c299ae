package web

import (
	"context"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/quernmr/quern/wire"
)

type (
	// Submission is what was submitted for a job. Sensitive values of properties and flags are hidden.
	Submission struct {
		Job        string            `json:"job"`
		Flow       string            `json:"flow,omitempty"`
		FlowName   string            `json:"flowName,omitempty"` // while a job of the flow has not ended
		Owner      string            `json:"owner,omitempty"`
		Submitted  time.Time         `json:"submitted,omitzero"`
		ViewACL    string            `json:"viewACL,omitempty"` // as in the property; left out: the default of the cluster
		ModifyACL  string            `json:"modifyACL,omitempty"`
		Program    *Program          `json:"program,omitempty"` // left out: an older build has written the job's history
		Inputs     []Input           `json:"inputs"`
		Output     string            `json:"output,omitempty"` // left out: other jobs of the flow read it
		Format     string            `json:"format"`           // of the output
		Outputs    []string          `json:"outputs,omitempty"`
		Reduces    int               `json:"reduces"`
		Combine    bool              `json:"combine,omitempty"`
		TotalOrder bool              `json:"totalOrder,omitempty"`
		Key        string            `json:"key"`   // Go type of the map output's keys
		Value      string            `json:"value"` // and of its values
		OutKey     string            `json:"outKey"`
		OutValue   string            `json:"outValue"`
		Files      map[string]string `json:"files,omitempty"`  // side files: name to URL
		Properties map[string]string `json:"properties"`       // effective values
		Hidden     []string          `json:"hidden,omitempty"` // names of properties and flags with hidden values
	}

	// Program is the executable of a job, and its flags.
	Program struct {
		Hash  string            `json:"hash,omitempty"`  // SHA-256
		Bytes int64             `json:"bytes,omitempty"` // left out: not known
		Flags map[string]string `json:"flags,omitempty"` // all flags of the program, also those with default values
	}

	// Input is an input of a job.
	Input struct {
		Format     string   `json:"format"`
		RecordSize int      `json:"recordSize,omitempty"`
		Paths      []string `json:"paths,omitempty"`
		From       string   `json:"from,omitempty"`   // the job that writes it
		Splits     int      `json:"splits,omitempty"` // of an input without files
	}
)

// hiddenValue stands for a secret.
const hiddenValue = "(hidden)"

// secretName matches names of properties and flags with secret values. It has Hadoop's patterns
// (hadoop.security.sensitive-config-keys) for names with secrets, and more.
var secretName = regexp.MustCompile(`(?i)secret|password|passwd|passphrase|pass$|credential|token|(api|access|account|private|encryption)[-_.]?key`)

// isSecret reports whether the value of a name is hidden. redacted are names that the job hides.
func isSecret(name string, redacted []string) bool {
	return name != wire.RedactedProperties && (secretName.MatchString(name) || slices.Contains(redacted, name))
}

// hideSecrets returns values without secrets, and the names of these.
func hideSecrets(values map[string]string, redacted []string) (shown map[string]string, hidden []string) {
	shown = make(map[string]string, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		shown[name] = values[name]
		if values[name] != "" && isSecret(name, redacted) {
			shown[name], hidden = hiddenValue, append(hidden, name)
		}
	}
	return shown, hidden
}

func submissionOf(x *wire.JobSubmission) *Submission {
	p := x.Plan
	s := &Submission{
		Job: x.Job.String(), FlowName: x.FlowName, Owner: x.Owner, Submitted: timeOf(x.At), ViewACL: x.View, ModifyACL: x.Modify,
		Inputs: []Input{}, Output: p.Output, Format: p.Format, Outputs: p.Outputs, Reduces: p.Reduces, Combine: p.Combine, TotalOrder: p.TotalOrder,
		Key: p.Key, Value: p.Value, OutKey: p.OutKey, OutValue: p.OutValue, Files: p.Files,
	}
	first := x.Job
	if !x.Flow.IsZero() {
		s.Flow, first = x.Flow.String(), wire.JobID(x.Flow)
	}
	for _, in := range p.Inputs {
		input := Input{Format: in.Format, RecordSize: in.RecordSize, Paths: in.Paths, Splits: in.Splits}
		if in.From > 0 {
			input.From = wire.JobID{Start: first.Start, N: first.N + in.From - 1}.String()
		}
		s.Inputs = append(s.Inputs, input)
	}
	redacted := strings.FieldsFunc(p.Properties[wire.RedactedProperties], func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	s.Properties, s.Hidden = hideSecrets(p.Properties, redacted)
	if x.Program != nil {
		s.Program = &Program{Hash: x.Program.Hash}
		var hidden []string
		s.Program.Flags, hidden = hideSecrets(x.Program.Flags, redacted)
		s.Hidden = append(s.Hidden, hidden...)
	}
	return s
}

func (h *handler) submission(ctx context.Context, r *http.Request) (any, error) {
	id, err := h.jobAtLeader(r)
	if err != nil {
		return nil, err
	}
	x, err := h.Server.Submission(ctx, h.caller(r), id)
	if err != nil {
		return nil, err
	}
	s := submissionOf(&x)
	if x.Program != nil && x.Program.Hash != "" {
		if s.Program.Bytes, err = h.Server.ProgramBytes(&x); err != nil {
			h.Logger.Debug("the size of a program is not known", "job", id, "error", err)
		}
	}
	return s, nil
}

// Submission returns what was submitted for a job.
func (c *Client) Submission(ctx context.Context, id wire.JobID) (*Submission, error) {
	s := new(Submission)
	_, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/jobs/" + id.String() + "/submission"}, s)
	return s, err
}
