package sasl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Level says how a connection is protected. Each level includes the ones before it.
type Level int

const (
	Authentication Level = iota // both sides are known; messages can be read and changed on the way
	Integrity                   // messages cannot be changed
	Privacy                     // messages cannot be read
)

var levelNames = []string{"authentication", "integrity", "privacy"}

func (l Level) String() string { return levelNames[l] }

// ErrWeaker reports a server that offers less protection than the configuration demands.
var ErrWeaker = errors.New("weaker protection than configured")

// ErrUnsupported reports a feature of HDFS that Quern does not have.
var ErrUnsupported = errors.New("not supported")

// Demand is the value of a property that has the protection of connections.
type Demand struct {
	Property string
	Levels   []Level // in the order of preference
}

// ParseDemand parses a comma-separated list of levels, as Hadoop writes it.
func ParseDemand(property, text string) (Demand, error) {
	d := Demand{Property: property}
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(levelNames, strings.ToLower(strings.TrimSpace(name)))
		if i < 0 {
			return d, fmt.Errorf("%s: %q is not one of %s", property, name, strings.Join(levelNames, ", "))
		}
		d.Levels = append(d.Levels, Level(i))
	}
	return d, nil
}

// Least returns the weakest level of the demand.
func (d Demand) Least() Level { return slices.Min(d.Levels) }

// Choose returns the first level of the demand that is offered. If there is none, it returns the
// weakest offer above the demand's weakest level.
func (d Demand) Choose(offered []Level) (Level, error) {
	for _, l := range d.Levels {
		if slices.Contains(offered, l) {
			return l, nil
		}
	}
	stronger := slices.DeleteFunc(slices.Clone(offered), func(l Level) bool { return l < d.Least() })
	if len(stronger) > 0 {
		return slices.Min(stronger), nil
	}
	return 0, fmt.Errorf("%w: it offers %s, %s demands %s", ErrWeaker, list(offered), d.Property, list(d.Levels))
}

func list(levels []Level) string {
	if len(levels) == 0 {
		return "nothing"
	}
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = l.String()
	}
	return strings.Join(names, ", ")
}
