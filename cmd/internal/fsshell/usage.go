package fsshell

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quernmr/quern/dfs"
)

// du shows the space that paths use; without -s, that of each entry of a directory.
func (r *call) du(args []string) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	var rows [][3]string
	if r.flag["v"] {
		rows = append(rows, [3]string{"SIZE", "DISK_SPACE_CONSUMED_WITH_ALL_REPLICAS", "FULL_PATH_NAME"})
	}
	headers := len(rows)
	add := func(p place) error {
		u, err := r.usageOf(p)
		if err == nil {
			rows = append(rows, [3]string{size(u.Bytes, r.flag["h"]), size(u.Stored, r.flag["h"]), p.text})
		}
		return err
	}
	err := r.each(args, func(p place) error {
		if r.flag["s"] || !p.Dir {
			return add(p)
		}
		all, err := p.children()
		for _, child := range all {
			if err := r.must(child, add); err != nil {
				r.fail(err)
			}
		}
		return err
	})
	if len(rows) > headers {
		r.table(rows)
	}
	return err
}

// table prints rows in columns.
func (r *call) table(rows [][3]string) {
	var widths [2]int
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, row := range rows {
		r.println(fmt.Sprintf("%-*s  %-*s  %s", widths[0], row[0], widths[1], row[1], row[2]))
	}
}

// usageOf sums up a path; with -x without what only snapshots have.
func (r *call) usageOf(p place) (dfs.Usage, error) {
	u, err := p.files.Usage(p.url)
	if r.flag["x"] {
		u.Bytes, u.Stored = u.Bytes-u.SnapshotBytes, u.Stored-u.SnapshotStored
		u.Files, u.Directories = u.Files-u.SnapshotFiles, u.Directories-u.SnapshotDirectories
	}
	return u, err
}

// Lines of -count.
const (
	quotaColumns = "%12s %15s %15s %15s "
	countColumns = "%12s %12s %18s "
)

// count counts directories, files and bytes; with -q or -u also quotas.
func (r *call) count(args []string) error {
	quotas, counts := r.flag["q"] || r.flag["u"], !r.flag["u"]
	if r.flag["v"] {
		header := ""
		if quotas {
			header = fmt.Sprintf(quotaColumns, "QUOTA", "REM_QUOTA", "SPACE_QUOTA", "REM_SPACE_QUOTA")
		}
		if counts {
			header += fmt.Sprintf(countColumns, "DIR_COUNT", "FILE_COUNT", "CONTENT_SIZE")
		}
		r.println(header + "PATHNAME")
	}
	return r.each(args, func(p place) error {
		u, err := r.usageOf(p)
		if err != nil {
			return err
		}
		var b strings.Builder
		if quotas {
			b.WriteString(r.quotas(u))
		}
		if counts {
			fmt.Fprintf(&b, countColumns, size(u.Directories, r.flag["h"]), size(u.Files, r.flag["h"]), size(u.Bytes, r.flag["h"]))
		}
		r.println(b.String() + p.text)
		return nil
	})
}

// quotas is the part of a line of -count with quotas and what is left of them.
func (r *call) quotas(u dfs.Usage) string {
	names, namesLeft, space, spaceLeft := "none", "inf", "none", "inf"
	if u.NameQuota > 0 {
		names, namesLeft = size(u.NameQuota, r.flag["h"]), r.left(u.NameQuota-u.Files-u.Directories)
	}
	if u.SpaceQuota >= 0 {
		space, spaceLeft = size(u.SpaceQuota, r.flag["h"]), r.left(u.SpaceQuota-u.Stored)
	}
	return fmt.Sprintf(quotaColumns, names, namesLeft, space, spaceLeft)
}

// left formats what is left of a quota; a directory can be above it.
func (r *call) left(n int64) string {
	if n < 0 && r.flag["h"] {
		return "-" + size(-n, true)
	}
	if n < 0 {
		return strconv.FormatInt(n, 10)
	}
	return size(n, r.flag["h"])
}
