package pool

import (
	"encoding/xml"
	"slices"
	"strconv"
	"strings"
)

// harmless lists elements of Hadoop that limit and protect nothing in Quern: the order of jobs
// within a pool, and settings of reservations, which Quern does not have.
var harmless = []string{
	"schedulingPolicy", "schedulingMode", "defaultQueueSchedulingPolicy", "defaultQueueSchedulingMode", "defaultPoolSchedulingMode",
	"reservation-agent", "reservation-planner", "reservation-policy",
	"aclSubmitReservations", "aclListReservations", "aclAdministerReservations",
}

// Percentages in the list of ignored elements stands for resources such as "50%".
const Percentages = "percentages"

// unknown skips an element that Quern does not support. If it may limit or protect something, the
// administrator must have said that it may be ignored.
func (r *reader) unknown(e *xml.StartElement, where string) error {
	name := e.Name.Local
	switch name {
	case "queuePlacementPolicy":
		if quern, err := r.placesAsQuern(); quern || err != nil {
			return err
		}
	case "maxAMShare", "queueMaxAMShareDefault":
		text, err := r.text()
		if err != nil {
			return err
		}
		if share, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil && share < 0 { // no limit
			return nil
		}
	default:
		if slices.Contains(harmless, name) {
			return r.without(name, where)
		}
		if err := r.ignored(name, name+where); err != nil {
			return err
		}
		return r.skip()
	}
	return r.ignored(name, name+where)
}

// without skips an element and warns of it.
func (r *reader) without(name, where string) error {
	r.warn("%s%s is not known to Quern and has no effect", name, where)
	return r.skip()
}

// ignored warns of something that may be ignored, or fails.
func (r *reader) ignored(key, what string) error {
	if !slices.Contains(r.ignore, key) {
		return r.fail("%s is not supported, and may limit or protect something: remove it, or let it have no effect by -pools-ignore %s", what, key)
	}
	r.warn("%s is not supported and has no effect (-pools-ignore)", what)
	return nil
}

// placesAsQuern reads a placement policy. It reports whether its rules do what Quern does: a job is
// in the pool that it names, else in the default pool.
func (r *reader) placesAsQuern() (bool, error) {
	var rules []string
	plain := true
	err := r.children(func(e *xml.StartElement) error {
		name, _ := nameOf(e)
		rules = append(rules, name)
		for _, a := range e.Attr {
			plain = plain && (a.Name.Local == "name" || a.Name.Local == "create" || a.Name.Local == "queue" && Name(a.Value) == "default")
		}
		return r.children(func(*xml.StartElement) error {
			plain = false
			return r.skip()
		})
	})
	return plain && slices.Equal(rules, []string{"specified", "default"}), err
}
