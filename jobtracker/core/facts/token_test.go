package facts

import (
	"slices"
	"testing"

	"github.com/quernmr/quern/wire"
)

// tokens lists the tokens of a submission's jobs.
func tokens(f *Facts, key string) (all []string) {
	s := f.submissions[key]
	for j := range f.Flow(s) {
		all = append(all, f.Token(j))
	}
	return all
}

func sent(jobs int, key string, secret string) *Submitted {
	return &Submitted{Secret: []byte(secret), Submission: wire.Submission{
		Key: key, Owner: "ann", Staging: "mem://s/" + key, Plan: wire.Plan{Jobs: make([]wire.JobPlan, jobs)},
	}}
}

// TestTokens checks that every job has its own token. A second submission of the same key, a
// restore, or the end of the job do not change it.
func TestTokens(t *testing.T) {
	l := &testLog{t: t, facts: New()}
	l.add(&Bootstrapped{Start: 1, Nonce: "nonce"})
	for _, x := range []*Submitted{sent(2, "a", "one"), sent(1, "b", "two"), sent(1, "c", "one"), sent(1, "old", "")} {
		if !l.add(x) {
			t.Fatalf("%s does not fit", x.Name())
		}
	}
	var all []string
	for _, key := range []string{"a", "b", "c", "old"} {
		all = append(all, tokens(l.facts, key)...)
	}
	for i, token := range all {
		if len(token) != 64 || slices.Contains(all[:i], token) {
			t.Errorf("token %d is %q, of %q", i, token, all)
		}
	}
	if l.add(sent(2, "a", "three")) {
		t.Error("a key is submitted twice")
	}
	l.add(&Stopped{Job: 1, Outcome: wire.Killed})
	l.add(&Ended{Job: 1, Outcome: wire.Killed})
	l.add(&Ended{Job: 2, Outcome: wire.Killed})
	data, err := l.facts.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	restored, err := Restore(data)
	if err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]*Facts{"facts": l.facts, "restored facts": restored} {
		if got := tokens(f, "a"); !slices.Equal(got, all[:2]) {
			t.Errorf("%s: tokens %q, before %q", what, got, all[:2])
		}
		if owner := f.submissions["a"].Owner(); owner != "ann" {
			t.Errorf("%s: the owner of an ended job is %q", what, owner)
		}
	}
}

// TestFactsBeforeSecrets checks that entries and snapshots of submissions without a secret keep
// their bytes. A build without secrets does not read an entry that has one.
func TestFactsBeforeSecrets(t *testing.T) {
	type before struct {
		At         int64           `msgpack:"a"`
		Submission wire.Submission `msgpack:"s"`
	}
	x := sent(1, "k", "")
	body, err := wire.Marshal(&before{Submission: x.Submission})
	if err != nil {
		t.Fatal(err)
	}
	entry := append([]byte{entryVersion, 5}, body...)
	if got := Encode(x); !slices.Equal(got, entry) {
		t.Errorf("the entry is %q, was %q", got, entry)
	}
	if with := Encode(sent(1, "k", "secret")); with[1] == 5 {
		t.Error("an entry with a secret has the number of entries without one")
	}
	y, err := Decode(entry)
	if err != nil {
		t.Fatal(err)
	}
	f := New()
	f.Apply(1, 1, &Bootstrapped{Start: 1, Nonce: "nonce"})
	f.Apply(2, 1, y)
	data, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"Secret", "Owner"} {
		// The owner is in the body, once.
		if n := countOf(data, field); n != map[string]int{"Secret": 0, "Owner": 1}[field] {
			t.Errorf("the snapshot has %d fields %s", n, field)
		}
	}
	if s := f.submissions["k"]; s.Owner() != "ann" {
		t.Errorf("the owner of an open submission is %q", s.Owner())
	}
}

// TestFactsBeforeACLs checks that Facts stay the same for submissions of builds without ACLs, which accepted
// properties with their names. A build without ACLs does not read an entry that has some.
func TestFactsBeforeACLs(t *testing.T) {
	x := sent(1, "k", "secret")
	x.Submission.Plan.Jobs[0].Properties = map[string]string{wire.ViewACL: "bob", wire.ModifyACL: "carl"}
	f := New()
	f.Apply(1, 1, &Bootstrapped{Start: 1})
	f.Apply(2, 1, x)
	data, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"View", "Modify"} {
		if n := countOf(data, field); n != 0 {
			t.Errorf("the snapshot has %d fields %s", n, field)
		}
	}
	x.View = "bob"
	if n := Encode(x)[1]; n != submittedACLs {
		t.Errorf("an entry with an ACL has the number %d", n)
	}
}

func countOf(data []byte, text string) (n int) {
	for i := range data {
		if i+len(text) <= len(data) && string(data[i:i+len(text)]) == text {
			n++
		}
	}
	return n
}
