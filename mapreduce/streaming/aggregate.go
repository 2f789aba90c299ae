package streaming

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quernmr/quern/internal/javatext"
	"github.com/quernmr/quern/runtime"
)

// aggregator is one of Hadoop's value aggregators: a sum over the values of a key.
type aggregator interface {
	add(value string) error
	// combined returns values for another aggregator of the kind.
	combined() []string
	report() string
}

// aggregators by the names that begin keys.
var aggregators = map[string]func() aggregator{
	"LongValueSum": func() aggregator { return &longValue{fold: func(a, b int64) int64 { return a + b }} },
	"LongValueMax": func() aggregator {
		return &longValue{value: math.MinInt64, fold: func(a, b int64) int64 { return max(a, b) }}
	},
	"LongValueMin": func() aggregator {
		return &longValue{value: math.MaxInt64, fold: func(a, b int64) int64 { return min(a, b) }}
	},
	"DoubleValueSum": func() aggregator { return new(doubleSum) },
	"StringValueMax": func() aggregator { return &stringValue{sign: 1} },
	"StringValueMin": func() aggregator { return &stringValue{sign: -1} },
	"UniqValueCount": func() aggregator { return uniqueCount{} },
	"ValueHistogram": func() aggregator { return histogram{} },
}

// aggregate sums up the values of each key NAME:ID. A combiner writes values under the same key, a reducer results under ID.
func (c *compiled) aggregate(in runtime.Records, combines bool, put sink) error {
	var current []byte
	var sum aggregator
	end := func() error {
		if sum == nil {
			return nil
		}
		_, id, _ := bytes.Cut(current, []byte(":"))
		if !combines {
			return put(id, []byte(sum.report()))
		}
		for _, value := range sum.combined() {
			if err := put(current, []byte(value)); err != nil {
				return err
			}
		}
		return nil
	}
	for in.Next() {
		key, value, err := c.loaded(in.Key(), in.Value())
		if err != nil {
			return err
		}
		if sum == nil || !bytes.Equal(key, current) {
			if err := end(); err != nil {
				return err
			}
			name, _, ok := strings.Cut(string(key), ":")
			if current = append(current[:0], key...); !ok || aggregators[name] == nil {
				return runtime.Fatal(fmt.Errorf("the aggregate reducer got the key %.100q: want NAME:ID with one of the names %s",
					key, strings.Join(slices.Sorted(maps.Keys(aggregators)), ", ")))
			}
			sum = aggregators[name]()
		}
		if err := sum.add(string(value)); err != nil {
			return fmt.Errorf("the aggregate reducer got for %.100q the value %.100q: %w", key, value, err)
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	return end()
}

type longValue struct {
	value int64
	fold  func(a, b int64) int64
}

func (l *longValue) add(value string) error {
	n, err := strconv.ParseInt(value, 10, 64)
	l.value = l.fold(l.value, n)
	return err
}

func (l *longValue) combined() []string { return []string{l.report()} }
func (l *longValue) report() string     { return strconv.FormatInt(l.value, 10) }

type doubleSum struct{ sum float64 }

func (d *doubleSum) add(value string) error {
	n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	d.sum += n
	return err
}

func (d *doubleSum) combined() []string { return []string{d.report()} }
func (d *doubleSum) report() string     { return string(javatext.AppendFloat(nil, d.sum, 64)) }

type stringValue struct {
	sign  int
	value string
	any   bool
}

func (s *stringValue) add(value string) error {
	if !s.any || strings.Compare(value, s.value)*s.sign > 0 {
		s.value, s.any = value, true
	}
	return nil
}

func (s *stringValue) combined() []string { return []string{s.value} }
func (s *stringValue) report() string     { return s.value }

type uniqueCount map[string]struct{}

func (u uniqueCount) add(value string) error {
	u[value] = struct{}{}
	return nil
}

func (u uniqueCount) combined() []string { return slices.Sorted(maps.Keys(u)) }
func (u uniqueCount) report() string     { return strconv.Itoa(len(u)) }

// histogram counts values. A value may end in a tab and a count.
type histogram map[string]int64

func (h histogram) add(value string) error {
	n, at := int64(1), strings.LastIndexByte(value, '\t')
	if at >= 0 {
		var err error
		if n, err = strconv.ParseInt(value[at+1:], 10, 64); err != nil {
			return err
		}
		value = value[:at]
	}
	h[value] += n
	return nil
}

func (h histogram) combined() (all []string) {
	for _, value := range slices.Sorted(maps.Keys(h)) {
		all = append(all, value+"\t"+strconv.FormatInt(h[value], 10))
	}
	return all
}

// report is the number of distinct values, and of their counts the least, median, greatest, mean and standard deviation.
func (h histogram) report() string {
	counts := slices.Sorted(maps.Values(h))
	var sum int64
	for _, n := range counts {
		sum += n
	}
	n := len(counts)
	mean, squares := float64(sum)/float64(n), 0.0
	for _, c := range counts {
		squares += (float64(c) - mean) * (float64(c) - mean)
	}
	text := fmt.Appendf(nil, "%d\t%d\t%d\t%d\t", n, counts[0], counts[n/2], counts[n-1])
	text = append(javatext.AppendFloat(text, mean, 64), '\t')
	return string(javatext.AppendFloat(text, math.Sqrt(squares/float64(n)), 64))
}
