package flowflex

// Measure has the lower bounds of a flow that has all slots.
type Measure struct {
	Volume     float64   // V: slot-seconds
	Q          float64   // a lower bound of its seconds (equation 2)
	LowerBound float64   // a better lower bound of its seconds, at least Q; see tightenBounds
	Tails      []float64 // by job: least seconds from its start to the end of the flow
}

// Measures returns the measures of the problem's flows. The error names an invalid field.
func Measures(p Problem) ([]Measure, error) {
	made, err := prepare(p)
	if err != nil {
		return nil, err
	}
	measures := make([]Measure, len(made.flows))
	for i := range made.flows {
		f := &made.flows[i]
		measures[i] = Measure{Volume: f.volume, Q: f.q, LowerBound: f.lowerBound, Tails: make([]float64, len(f.jobs))}
		for k := range f.jobs {
			measures[i].Tails[k] = f.jobs[k].tail
		}
	}
	return measures, nil
}
