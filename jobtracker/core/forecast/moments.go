package forecast

import (
	"math"
	"slices"
	"time"
)

// moments describe an uncertain number of seconds by its mean, variance and third central moment.
type moments struct{ mean, variance, third float64 }

func certain(seconds float64) moments { return moments{mean: seconds} }

// plus is the sum of two independent numbers.
func (m moments) plus(o moments) moments {
	return moments{m.mean + o.mean, m.variance + o.variance, m.third + o.third}
}

// minus subtracts a certain number.
func (m moments) minus(seconds float64) moments { return m.plus(certain(-seconds)) }

// raw returns the means of the powers.
func (m moments) raw() (first, second, third float64) {
	return m.mean, m.variance + m.mean*m.mean, m.third + 3*m.mean*m.variance + m.mean*m.mean*m.mean
}

// ofRaw is the inverse of raw.
func ofRaw(first, second, third float64) moments {
	variance := max(0, second-first*first)
	return moments{first, variance, third - 3*first*variance - first*first*first}
}

// times multiplies by an independent factor: it is log-normal, with the mean 1 and a relative error.
func (m moments) times(relative float64) moments {
	w := 1 + relative*relative
	a, b, c := m.raw()
	return ofRaw(a, b*w, c*w*w*w)
}

// shrunk is the same number in a smaller unit, with a mean of at most some seconds.
func (m moments) shrunk(most float64) moments {
	if m.mean <= most {
		return m
	}
	k := most / m.mean
	return moments{most, m.variance * k * k, m.third * k * k * k}
}

// spread is a number of seconds with a relative error.
func spread(seconds, relative float64) moments { return certain(seconds).times(relative) }

// orLate is the number for a phase with an overdue task: nothing tells when it ends.
func (m moments) orLate(overdue time.Duration) moments {
	late := spread(overdue.Seconds(), overdueDiffers)
	m.mean = max(m.mean, late.mean)
	return m.plus(late.minus(late.mean))
}

// noSkew is a skewness that makes no difference.
const noSkew = 1e-3

// quantile is the value at a quantile of the standard normal distribution, of the shifted log-normal distribution with
// these moments.
func (m moments) quantile(z float64) float64 {
	if m.variance <= 0 {
		return m.mean
	}
	sd := math.Sqrt(m.variance)
	skew := m.third / (m.variance * sd)
	sign := 1.0
	if skew < 0 {
		skew, sign = -skew, -1
	}
	if skew < noSkew {
		return m.mean + sd*z
	}
	// The skewness is (w+2)√(w-1), where w is the exponential of the variance of the logarithm: a cubic equation.
	root := skew * math.Sqrt(1+skew*skew/4)
	w := math.Cbrt(1+skew*skew/2+root) + math.Cbrt(1+skew*skew/2-root) - 1
	scale := sd / math.Sqrt(w*(w-1))
	return m.mean + sign*scale*(math.Exp(sign*z*math.Sqrt(math.Log(w)))-math.Sqrt(w))
}

// The points and weights of Gauss's quadrature on [0, 1].
var quadrature = [...][2]float64{
	{0.019855, 0.050614}, {0.101667, 0.111191}, {0.237234, 0.156853}, {0.408283, 0.181342},
	{0.591717, 0.181342}, {0.762766, 0.156853}, {0.898333, 0.111191}, {0.980145, 0.050614},
}

// ofQuantiles describes a number by its quantiles.
func ofQuantiles(at func(p float64) float64) moments {
	var a, b, c float64
	for _, q := range quadrature {
		x := at(q[0])
		a, b, c = a+q[1]*x, b+q[1]*x*x, c+q[1]*x*x*x
	}
	return ofRaw(a, b, c)
}

// ofSurvival describes a positive number of at most limit by the probability that it is larger.
func ofSurvival(beyond func(seconds float64) float64, limit float64) moments {
	var a, b, c float64
	const parts = 3
	for part := range parts {
		for _, q := range quadrature {
			x := (float64(part) + q[0]) * limit / parts
			weight := q[1] * limit / parts * beyond(x)
			a, b, c = a+weight, b+2*x*weight, c+3*x*x*weight
		}
	}
	return ofRaw(a, b, c)
}

// A task's time has a log-normal distribution: often some tasks are much longer than others.

// leastSigma keeps divisions finite.
const leastSigma = 0.005

// logNormal returns the mean and the standard deviation of the logarithm of a task's seconds.
func (t *Task) logNormal() (mu, sigma float64) {
	v := math.Log1p(t.Deviation * t.Deviation)
	return math.Log(max(t.Time, minTaskTime).Seconds()) - v/2, math.Sqrt(v)
}

// longest is the time of the longest of several tasks.
func (t *Task) longest(tasks int) moments {
	mu, sigma := t.logNormal()
	return ofQuantiles(func(p float64) float64 {
		return math.Exp(mu + sigma*normalQuantile(math.Pow(p, 1/float64(tasks))))
	})
}

// lastTasks is by how much the end of the last of many tasks differs from the end that they had if they could be divided,
// on some slots. Each slot has a task that began at any time: the longest rest of them is left, instead of
// the mean.
func (t *Task) lastTasks(slots int) moments {
	mu, sigma := t.logNormal()
	mean := max(t.Time, minTaskTime).Seconds()
	last := ofQuantiles(func(p float64) float64 {
		p = math.Pow(p, 1/float64(slots))
		x := 0.0
		for range 8 { // Newton's method: the distribution is concave
			z := (math.Log(max(x, 1e-9)) - mu) / max(sigma, leastSigma)
			longer := normalCDF(-z)
			if longer < 1e-7 {
				break
			}
			below := normalCDF(z-sigma) + x/mean*longer
			x += max(0, (p-below)*mean/longer)
		}
		return x
	})
	return last.minus(mean * (1 + t.Deviation*t.Deviation) / 2)
}

// rests is the time until the last of the running tasks ends, given their ages. Each age stands for weight tasks.
func (t *Task) rests(ages []float64, weight float64) moments {
	mu, sigma := t.logNormal()
	sigma = max(sigma, leastSigma)
	z := func(x float64) float64 { return (math.Log(max(x, 1e-9)) - mu) / sigma / math.Sqrt2 }
	survived := make([]float64, len(ages))
	limit := 0.0
	for i, age := range ages {
		survived[i] = math.Erfc(z(age))
		beyond := survived[i] * 1e-3 / float64(len(ages))
		limit = max(limit, math.Exp(mu+sigma*math.Sqrt2*math.Erfcinv(max(beyond, 1e-300)))-age)
	}
	limit = min(limit, 10*max(math.Exp(mu), slices.Max(ages)))
	return ofSurvival(func(x float64) float64 {
		ended := 1.0 // probability
		for i, age := range ages {
			if survived[i] > 0 {
				ended *= 1 - min(1, math.Erfc(z(age+x))/survived[i])
			}
		}
		if weight > 1 {
			ended = math.Pow(ended, weight)
		}
		return 1 - ended
	}, limit)
}

// mixed averages what f says for the times that a task may have on average.
func (t Task) mixed(f func(t *Task) moments) moments {
	var a, b, c float64
	for _, node := range [...][2]float64{{-math.Sqrt(3), 1. / 6}, {0, 2. / 3}, {math.Sqrt(3), 1. / 6}} {
		other := t
		other.Time = time.Duration(float64(t.Time) * math.Exp(t.Error*node[0]-t.Error*t.Error/2))
		x, y, z := f(&other).raw()
		a, b, c = a+node[1]*x, b+node[1]*y, c+node[1]*z
	}
	return ofRaw(a, b, c)
}
