package hdfs

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
	"unsafe"

	client "github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Only this file uses unexported parts of the client library. The library has had no
// release since 2023 and its version is pinned. A test checks each assumption.

// remote is the library's connection to NameNodes, for one call at a time.
type remote interface {
	Execute(method string, req, resp proto.Message) error
}

// private returns a pointer to an unexported field of *owner.
func private(owner any, name string) reflect.Value {
	field := reflect.ValueOf(owner).Elem().FieldByName(name)
	if !field.IsValid() {
		panic(fmt.Sprintf("hdfs: %T has no field %s", owner, name))
	}
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr()))
}

// prepareClient prepares a new client of the library. It sets the client name and stops the
// renewal of leases, which the library does every second, for readers too.
func prepareClient(c *client.Client, name string) remote {
	conn := private(c, "namenode").Elem()
	conn.Elem().FieldByName("ClientName").SetString(name)
	close(private(conn.Interface(), "done").Elem().Interface().(chan struct{}))
	return conn.Interface().(remote)
}

// withDialer returns a client on the same connection to NameNodes that dials DataNodes with dial.
// Concurrent use of the copies changes no shared state.
func withDialer(c *client.Client, dial dialFunc) *client.Client {
	clientCopy := *c
	private(&clientCopy, "options").Interface().(*client.ClientOptions).DatanodeDialFunc = dial
	return &clientCopy
}

// takeEncryption reports whether the NameNode says that DataNodes encrypt, and hides that from the
// library, which would encrypt by itself.
func takeEncryption(c *client.Client) bool {
	field := private(c, "defaults").Elem().Elem().FieldByName("EncryptDataTransfer")
	encrypts := !field.IsNil() && field.Elem().Bool()
	field.SetZero()
	return encrypts
}

// readByID makes a reader request its blocks by the file's number, because at its first
// read the name may belong to another file.
func readByID(r *client.FileReader, id uint64) {
	private(r, "name").Elem().SetString(fmt.Sprintf("/.reserved/.inodes/%d", id))
}

// The library remembers failed DataNodes for the life of the process, and reads from them
// only if there is no other.
//
//go:linkname datanodeFailures github.com/colinmarc/hdfs/v2/internal/transfer.datanodeFailures
var datanodeFailures map[string]time.Time

//go:linkname datanodeFailuresLock github.com/colinmarc/hdfs/v2/internal/transfer.datanodeFailuresLock
var datanodeFailuresLock sync.Mutex

// forgetFailures removes the DataNodes that failed before a time from the library's memory.
func forgetFailures(before time.Time) {
	datanodeFailuresLock.Lock()
	defer datanodeFailuresLock.Unlock()
	for addr, at := range datanodeFailures {
		if at.Before(before) {
			delete(datanodeFailures, addr)
		}
	}
}

// message makes one of the library's messages, given its name without Proto and pairs of
// field name and value. Names in other packages than HDFS's begin with common. It panics on an
// unknown field.
func message(name string, fields ...any) proto.Message {
	if !strings.HasPrefix(name, "common.") {
		name = "hdfs." + name
	}
	full := protoreflect.FullName("hadoop." + name + "Proto")
	kind, err := protoregistry.GlobalTypes.FindMessageByName(full)
	if err != nil {
		panic(fmt.Sprintf("hdfs: message %s: %v", full, err))
	}
	m := kind.New()
	for i := 0; i < len(fields); i += 2 {
		fd := m.Descriptor().Fields().ByName(protoreflect.Name(fields[i].(string)))
		if fd == nil {
			panic(fmt.Sprintf("hdfs: message %s has no field %s", full, fields[i]))
		}
		switch value := fields[i+1].(type) {
		case nil:
		case []proto.Message:
			list := m.Mutable(fd).List()
			for _, element := range value {
				list.Append(protoreflect.ValueOfMessage(element.ProtoReflect()))
			}
		case proto.Message:
			m.Set(fd, protoreflect.ValueOfMessage(value.ProtoReflect()))
		default:
			m.Set(fd, protoreflect.ValueOf(value))
		}
	}
	return m.Interface()
}

// field returns a field's value, or its default if it is not set.
func field(m proto.Message, name string) protoreflect.Value {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(name)))
}

// has reports whether a field is set.
func has(m proto.Message, name string) bool {
	r := m.ProtoReflect()
	return r.Has(r.Descriptor().Fields().ByName(protoreflect.Name(name)))
}

// part returns a field that is a message.
func part(m proto.Message, name string) proto.Message { return field(m, name).Message().Interface() }

// parts returns a field that is a list of messages.
func parts(m proto.Message, name string) []proto.Message {
	list := field(m, name).List()
	all := make([]proto.Message, list.Len())
	for i := range all {
		all[i] = list.Get(i).Message().Interface()
	}
	return all
}

func value(v any) protoreflect.Value { return protoreflect.ValueOf(v) }
