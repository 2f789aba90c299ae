package hdfs

import (
	"strings"
	"time"

	client "github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quernmr/quern/dfs"
)

var _ dfs.Attributed = (*FS)(nil)

// aclBit is a bit of a mode that the NameNode sends for files with more permissions than the mode.
const aclBit = 1 << 12

func attributes(name string, s *client.FileStatus) dfs.Attributes {
	perm := s.GetPermission().GetPerm()
	a := dfs.Attributes{Info: describe(name, s), Mode: perm & 0o1777, ACL: perm&aclBit != 0, Owner: s.GetOwner(), Group: s.GetGroup(),
		Replicas: int(s.GetBlockReplication()), Accessed: time.UnixMilli(int64(s.GetAccessTime()))}
	if flags := s.ProtoReflect().Descriptor().Fields().ByName("flags"); flags != nil {
		a.ACL = a.ACL || s.ProtoReflect().Get(flags).Uint()&1 != 0
	}
	a.Length = a.Size
	return a
}

// Attributes implements dfs.Attributed.
func (f *FS) Attributes(name string) (dfs.Attributes, error) {
	c, path, name, err := f.resolve("stat", name)
	if err != nil {
		return dfs.Attributes{}, err
	}
	s, err := c.status(path)
	if err != nil {
		return dfs.Attributes{}, failure("stat", name, err)
	}
	return attributes(name, s), nil
}

// ListAttributes implements dfs.Attributed.
func (f *FS) ListAttributes(name string) ([]dfs.Attributes, error) { return list(f, name, attributes) }

// change sends an idempotent request for one path.
func (f *FS) change(op, name, method string, req func(path string) proto.Message) error {
	c, path, name, err := f.resolve(op, name)
	if err != nil {
		return err
	}
	return failure(op, name, c.call(strings.ToLower(method[:1])+method[1:], req(path), message(method+"Response")))
}

// SetMode implements dfs.Attributed.
func (f *FS) SetMode(name string, mode uint32) error {
	return f.change("chmod", name, "SetPermission", func(path string) proto.Message {
		return message("SetPermissionRequest", "src", path, "permission", permission(mode))
	})
}

// SetTimes implements dfs.Attributed.
func (f *FS) SetTimes(name string, modified, accessed time.Time) error {
	return f.change("chtimes", name, "SetTimes", func(path string) proto.Message {
		return message("SetTimesRequest", "src", path, "mtime", uint64(modified.UnixMilli()), "atime", uint64(accessed.UnixMilli()))
	})
}

// SetOwner implements dfs.Attributed.
func (f *FS) SetOwner(name, owner, group string) error {
	return f.change("chown", name, "SetOwner", func(path string) proto.Message {
		fields := []any{"src", path}
		if owner != "" {
			fields = append(fields, "username", owner)
		}
		if group != "" {
			fields = append(fields, "groupname", group)
		}
		return message("SetOwnerRequest", fields...)
	})
}

// Access implements dfs.Attributed.
func (f *FS) Access(name string, write bool) error {
	const mayRead, mayWrite = 4, 2
	mode := protoreflect.EnumNumber(mayRead)
	if write {
		mode = mayWrite
	}
	return f.change("access", name, "CheckAccess", func(path string) proto.Message {
		return message("CheckAccessRequest", "path", path, "mode", mode)
	})
}

// Usage implements dfs.Attributed.
func (f *FS) Usage(name string) (dfs.Usage, error) {
	c, path, name, err := f.resolve("sum up", name)
	if err != nil {
		return dfs.Usage{}, err
	}
	resp := message("GetContentSummaryResponse")
	if err := c.call("getContentSummary", message("GetContentSummaryRequest", "path", path), resp); err != nil {
		return dfs.Usage{}, failure("sum up", name, err)
	}
	summary := part(resp, "summary")
	number := func(name string) int64 { return int64(field(summary, name).Uint()) } // an unset quota is the bits of -1
	return dfs.Usage{Bytes: number("length"), Stored: number("spaceConsumed"), Files: number("fileCount"), Directories: number("directoryCount"),
		NameQuota: number("quota"), SpaceQuota: number("spaceQuota"),
		SnapshotBytes: number("snapshotLength"), SnapshotStored: number("snapshotSpaceConsumed"),
		SnapshotFiles: number("snapshotFileCount"), SnapshotDirectories: number("snapshotDirectoryCount")}, nil
}

// Home returns the home directory of the process's user in the file system of a name.
func (f *FS) Home(name string) (string, error) {
	c, _, _, err := f.resolve("home in", name)
	if err != nil {
		return "", err
	}
	return "hdfs://" + c.authority + "/user/" + dfs.ShortName(c.options.User), nil
}

// Trash returns the directory in the file system of a name in which removed files are kept.
func (f *FS) Trash(name string) (string, error) {
	home, err := f.Home(name)
	return dfs.Join(home, ".Trash"), err
}

// TrashInterval returns how long the file system of a name keeps removed files in a trash: the NameNode's configuration
// says so, or the client's. 0: it has no trash.
func (f *FS) TrashInterval(name string) (time.Duration, error) {
	c, _, name, err := f.resolve("trash of", name)
	if err != nil {
		return 0, err
	}
	resp := message("GetServerDefaultsResponse")
	if err := c.call("getServerDefaults", message("GetServerDefaultsRequest"), resp); err != nil {
		return 0, failure("trash of", name, err)
	}
	if minutes := field(part(resp, "serverDefaults"), "trashInterval").Uint(); minutes != 0 {
		return time.Duration(minutes) * time.Minute, nil
	}
	kept, err := c.conf.TrashInterval()
	return kept, failure("trash of", name, err)
}
