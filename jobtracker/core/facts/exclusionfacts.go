package facts

import "fmt"

// OperatorExclusion is the exclusion of a task tracker by an operator. It holds for every process
// with the tracker's name, registered or not, until an operator readmits the tracker or until Until.
type OperatorExclusion struct {
	N       int    `msgpack:"n"` // number of this change, see Facts.OperatorChanges
	Tracker string `msgpack:"t"`
	By      string `msgpack:"b"` // the operator
	Reason  string `msgpack:"r"` // as the operator gave it; may be empty
	At      int64  `msgpack:"a"` // Unix milliseconds
	Until   int64  `msgpack:"u"` // Unix milliseconds; 0: until an operator readmits it
}

// OperatorExcluded begins an operator's exclusion of a tracker, or replaces the earlier one.
type OperatorExcluded struct {
	Exclusion OperatorExclusion `msgpack:"x"`
}

func (*OperatorExcluded) number() byte { return 26 }
func (x *OperatorExcluded) Name() string {
	return fmt.Sprintf("operator %d excludes %s", x.Exclusion.N, x.Exclusion.Tracker)
}
func (x *OperatorExcluded) Fits(f *Facts) bool {
	return x.Exclusion.N == f.operatorChanges+1 && x.Exclusion.Tracker != ""
}
func (x *OperatorExcluded) apply(f *Facts, _ uint64) {
	e := x.Exclusion
	f.operatorChanges, f.operatorExclusions[e.Tracker] = e.N, &e
}

// OperatorReadmitted ends an operator's exclusion. If an operator asks for it, it also ends the
// leader's exclusion of the tracker.
type OperatorReadmitted struct {
	N       int    `msgpack:"n"` // number of this change, see Facts.OperatorChanges
	Tracker string `msgpack:"t"`
	Expired bool   `msgpack:"e"` // no operator asks for it: the exclusion's time is over
}

func (*OperatorReadmitted) number() byte { return 27 }
func (x *OperatorReadmitted) Name() string {
	if x.Expired {
		return fmt.Sprintf("operator's exclusion %d of %s is over", x.N, x.Tracker)
	}
	return fmt.Sprintf("operator %d readmits %s", x.N, x.Tracker)
}
func (x *OperatorReadmitted) Fits(f *Facts) bool {
	return x.N == f.operatorChanges+1 && x.Tracker != "" && (!x.Expired || f.operatorExclusions[x.Tracker] != nil)
}
func (x *OperatorReadmitted) apply(f *Facts, _ uint64) {
	f.operatorChanges = x.N
	delete(f.operatorExclusions, x.Tracker)
	if t := f.trackers[x.Tracker]; t != nil && !x.Expired {
		readmitted := *t
		readmitted.Excluded, readmitted.Until = "", 0
		f.trackers[x.Tracker] = &readmitted
	}
}
