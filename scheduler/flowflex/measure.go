package flowflex

// Measure is what a flow takes at best, whatever else there is to do.
type Measure struct {
	Volume float64   // V: slot-seconds
	Q      float64   // seconds before which it cannot complete (equation 2)
	Raised float64   // at least Q: nor can it complete before that; see reach
	Tails  []float64 // by job: seconds from its start to the end of the flow
}

// Measures checks the problem and measures its flows.
func Measures(p Problem) ([]Measure, error) {
	made, err := prepare(p)
	if err != nil {
		return nil, err
	}
	measures := make([]Measure, len(made.flows))
	for i := range made.flows {
		f := &made.flows[i]
		measures[i] = Measure{Volume: f.volume, Q: f.least, Raised: f.alone, Tails: make([]float64, len(f.jobs))}
		for k := range f.jobs {
			measures[i].Tails[k] = f.jobs[k].tail
		}
	}
	return measures, nil
}
