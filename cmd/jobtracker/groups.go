package main

import (
	"slices"

	"github.com/quernmr/quern/groups"
	"github.com/quernmr/quern/wire"
)

// unknownGroups returns the groups in flags without a line in the file of groups. Perhaps a name is mistyped.
func (o *options) unknownGroups(t *groups.Table) []string {
	view, _ := wire.ParseACL(o.viewACL) // parseLists has checked it
	names := slices.Concat(o.adminGroups, view.Groups)
	slices.Sort(names)
	known := t.Names()
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return slices.Contains(known, name) })
}
