package hdfs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"time"

	client "github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/quernmr/quern/dfs"
)

// Bits of CreateFlag.
const (
	flagAppend   = 0x04
	flagNewBlock = 0x20
)

// Append opens a file for more content, which begins a new block: so a failed DataNode can be replaced as in a new file,
// and the blocks that are there never change. Abort keeps the whole blocks that DataNodes have.
func (f *FS) Append(name string) (dfs.Writer, error) {
	c, path, name, err := f.resolve("append", name)
	if err != nil {
		return nil, err
	}
	status, err := c.status(path)
	switch {
	case err != nil:
	case status.GetFileEncryptionInfo() != nil || status.GetEcPolicy() != nil:
		err = fmt.Errorf("append to encrypted or erasure-coded files: %w", ErrUnsupported)
	case !c.claim(path):
		err = errors.New("this process is writing it")
	}
	if err != nil {
		return nil, failure("append", name, err)
	}
	w := newWriter(c, name, path, dfs.Creation{})
	w.appending = true
	c.addWriters(1)
	if err := c.retry(w.append); err != nil {
		w.unregister()
		return nil, failure("append", name, err)
	}
	return w, nil
}

func (w *writer) append(conn *pooledConn, _ retryState) error {
	resp := message("AppendResponse")
	err := conn.remote.Execute("append", message("AppendRequest", "src", w.path, "clientName", w.cluster.name, "flag", uint32(flagAppend|flagNewBlock)), resp)
	if err != nil {
		return err
	}
	if has(resp, "block") {
		w.previous = part(part(resp, "block"), "b")
	}
	status := part(resp, "stat").(*client.FileStatus)
	w.id, w.blockSize = status.GetFileId(), int64(status.GetBlocksize())
	return nil
}

// Truncate shortens a file. If it is not done, a DataNode is shortening the last block, and the file is locked until then.
func (f *FS) Truncate(name string, length int64) (done bool, err error) {
	c, path, name, err := f.resolve("truncate", name)
	if err != nil {
		return false, err
	}
	resp := message("TruncateResponse")
	err = c.call("truncate", message("TruncateRequest", "src", path, "newLength", uint64(length), "clientName", c.name), resp)
	return err == nil && field(resp, "result").Bool(), failure("truncate", name, err)
}

// SetReplication sets the number of replicas that a file shall have.
func (f *FS) SetReplication(name string, replicas int) (done bool, err error) {
	c, path, name, err := f.resolve("set replication of", name)
	if err != nil {
		return false, err
	}
	resp := message("SetReplicationResponse")
	err = c.call("setReplication", message("SetReplicationRequest", "src", path, "replication", uint32(replicas)), resp)
	return err == nil && field(resp, "result").Bool(), failure("set replication of", name, err)
}

// Space returns the space of the DataNodes of a name's file system.
func (f *FS) Space(name string) (dfs.Space, error) {
	c, _, name, err := f.resolve("space of", name)
	if err != nil {
		return dfs.Space{}, err
	}
	resp := message("GetFsStatsResponse")
	if err := c.call("getFsStats", message("GetFsStatusRequest"), resp); err != nil {
		return dfs.Space{}, failure("space of", name, err)
	}
	number := func(name string) int64 { return int64(field(resp, name).Uint()) }
	return dfs.Space{Capacity: number("capacity"), Used: number("used"), Free: number("remaining")}, nil
}

// Checksum returns Hadoop's checksum of a file: the MD5 of the MD5s of its blocks' checksums. It depends on the sizes of
// blocks.
func (f *FS) Checksum(name string) (algorithm string, sum []byte, err error) {
	c, path, name, err := f.resolve("checksum", name)
	if err != nil {
		return "", nil, err
	}
	if algorithm, sum, err = c.checksum(path); err != nil {
		return "", nil, failure("checksum", name, err)
	}
	return algorithm, sum, nil
}

func (c *cluster) checksum(path string) (algorithm string, sum []byte, err error) {
	status, err := c.status(path)
	if err != nil {
		return "", nil, err
	}
	resp := message("GetBlockLocationsResponse")
	if err := c.call("getBlockLocations", message("GetBlockLocationsRequest", "src", path, "offset", uint64(0), "length", status.GetLength()), resp); err != nil {
		return "", nil, err
	}
	if !has(resp, "locations") {
		return "", nil, fs.ErrNotExist
	}
	kind, perChunk, perBlock := "CRC32", uint64(0), uint64(0) // of an empty file
	blocks := parts(part(resp, "locations"), "blocks")
	var sums []byte
	for i, b := range blocks {
		answer, err := c.blockChecksum(b)
		if err != nil {
			return "", nil, err
		}
		if i == 0 {
			perChunk = field(answer, "bytesPerCrc").Uint()
			if field(answer, "crcType").Enum() == 2 {
				kind = "CRC32C"
			}
			if len(blocks) > 1 {
				perBlock = field(answer, "crcPerBlock").Uint()
			}
		}
		sums = append(sums, field(answer, "blockChecksum").Bytes()...)
	}
	padded := 32 // Hadoop sums up its buffer with the zeros at the end, and doubles it as it grows
	for padded < len(sums) {
		padded *= 2
	}
	whole := md5.Sum(append(sums, make([]byte, padded-len(sums))...))
	sum = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, uint32(perChunk)), perBlock)
	return fmt.Sprintf("MD5-of-%dMD5-of-%d%s", perBlock, perChunk, kind), append(sum, whole[:]...), nil
}

// blockChecksum asks the DataNodes that store a block, one after the other, for the checksum of its checksums.
func (c *cluster) blockChecksum(block proto.Message) (answer proto.Message, err error) {
	err = errors.New("no DataNode has a block of it")
	for _, node := range parts(block, "locs") {
		addr := c.dataAddr(node)
		if answer, err = c.blockChecksumAt(addr, block); err == nil {
			return answer, nil
		}
		err = fmt.Errorf("DataNode %s: %w", addr, err)
	}
	return nil, err
}

func (c *cluster) blockChecksumAt(addr string, block proto.Message) (proto.Message, error) {
	raw, err := c.dial(context.Background(), addr)
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	token := part(block, "blockToken")
	conn, err := c.secureData(raw, token)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(c.fs.options.Timeout)); err != nil {
		return nil, err
	}
	request, err := proto.Marshal(message("OpBlockChecksum", "header", message("BaseHeader", "block", part(block, "b"), "token", token)))
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(protowire.AppendBytes(bytes.Clone(checksumOp), request)); err != nil {
		return nil, err
	}
	answer := message("BlockOpResponse")
	if err := readMessage(bufio.NewReader(conn), answer); err != nil {
		return nil, err
	}
	if field(answer, "status").Enum() != 0 {
		return nil, fmt.Errorf("it refuses: %s", field(answer, "message").String())
	}
	return part(answer, "checksumResponse"), nil
}
