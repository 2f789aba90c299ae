package shuffle

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/wire"
)

// pathPrefix is the first element of every path that Handler serves.
const pathPrefix = "/shuffle/"

// Headers with a partition's index entry.
const (
	headerRecords = "Quern-Records"
	headerDigest  = "Quern-Digest"  // 16 hexadecimal digits
	headerCorrupt = "Quern-Corrupt" // set when the segment file's index is damaged
)

// URL returns the address at which Handler serves a partition of a map output. The base is
// the server's scheme, host and port.
func URL(base string, job wire.JobID, m, attempt, partition int) string {
	return fmt.Sprintf("%s%s%v/%d/%d/%d", base, pathPrefix, job, m, attempt, partition)
}

// Handler serves partitions of local segment files at
//
//	/shuffle/<job>/<map>/<attempt>/<partition>
//
// by GET, with single ranges, and HEAD, and batches of them, see the package comment. The body has the partition's blocks. On a plain TCP
// connection, sendfile copies them from the file to the socket. The caller must authorize
// requests before. Concurrent calls of resolve return the file of a map output;
// fs.ErrNotExist becomes 404. served counts the bytes of partitions that were sent.
func Handler(resolve func(job wire.JobID, m, attempt int) (file string, err error), served *meter.Count) http.Handler {
	mux, indexes := http.NewServeMux(), newIndexCache()
	mux.HandleFunc("GET "+pathPrefix+"{job}/"+batchPath, func(w http.ResponseWriter, r *http.Request) {
		serveBatch(w, r, resolve, indexes, served)
	})
	mux.HandleFunc("GET "+pathPrefix+"{job}/{map}/{attempt}/{partition}", func(w http.ResponseWriter, r *http.Request) {
		job, err := wire.ParseJobID(r.PathValue("job"))
		m, errMap := parseNumber(r.PathValue("map"))
		attempt, errAttempt := parseNumber(r.PathValue("attempt"))
		partition, errPartition := parseNumber(r.PathValue("partition"))
		if err = errors.Join(err, errMap, errAttempt, errPartition); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		file, err := resolve(job, m, attempt)
		if err == nil {
			err = servePartition(w, r, file, indexes, partition, served)
		}
		if err != nil {
			refuse(w, err)
		}
	})
	return mux
}

// serveBatch sends the answer to a batch.
func serveBatch(w http.ResponseWriter, r *http.Request, resolve outputFiles, indexes *indexCache, served *meter.Count) {
	job, err := wire.ParseJobID(r.PathValue("job"))
	var b *Batch
	if err == nil {
		b, err = parseBatch(job, r.URL.Query())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	control := http.NewResponseController(w)
	s := batchSender{to: bufio.NewWriterSize(steadyWriter{w, control}, 64<<10), indexes: indexes, flushed: time.Now()}
	s.flush = func() { _ = control.Flush() } // the next write has the error
	err = s.send(b, resolve)
	served.Add(s.sent)
	if err != nil {
		panic(http.ErrAbortHandler) // so that the client does not take the answer for complete
	}
}

// steadyWriter gives the peer sendWait for each write.
type steadyWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w steadyWriter) Write(p []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(sendWait)) // the error of a writer without deadlines does not matter
	return w.ResponseWriter.Write(p)
}

// refuse sends an error as the whole response.
func refuse(w http.ResponseWriter, err error) {
	var corrupt *CorruptError
	switch {
	case errors.As(err, &corrupt):
		w.Header().Set(headerCorrupt, "1")
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// servePartition sends a partition's bytes. It returns an error only before the response
// begins. After that the client only notices that the body ends early.
func servePartition(w http.ResponseWriter, r *http.Request, file string, indexes *indexCache, partition int, served *meter.Count) error {
	f, err := OpenFile(file)
	if err != nil {
		return err
	}
	defer f.Close()
	index, err := indexes.read(f)
	if err != nil {
		return err
	}
	if partition >= len(index.Partitions) {
		return fmt.Errorf("partition %d of %d: %w", partition, len(index.Partitions), fs.ErrNotExist)
	}
	p := index.Partitions[partition]
	start, length, ranged, ok := parseRange(r.Header.Get("Range"), p.Length)
	h := w.Header()
	if !ok {
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", p.Length))
		http.Error(w, "range begins after the end", http.StatusRequestedRangeNotSatisfiable)
		return nil
	}
	if _, err := f.Seek(p.Offset+start, io.SeekStart); err != nil {
		return err
	}
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(length, 10))
	h.Set(headerRecords, strconv.FormatInt(p.Records, 10))
	h.Set(headerDigest, fmt.Sprintf("%016x", p.Digest))
	if ranged {
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, start+length-1, p.Length))
		w.WriteHeader(http.StatusPartialContent)
	}
	if r.Method != http.MethodHead {
		send(w, f, length, served)
	}
	return nil
}

// The peer has sendWait to receive sendStep bytes. A peer that hangs must not keep a
// connection and a file open.
const (
	sendWait = time.Minute
	sendStep = 4 << 20
)

// send sends the next bytes of a file. It stops if the peer is too slow.
func send(w http.ResponseWriter, f *os.File, length int64, served *meter.Count) {
	control := http.NewResponseController(w)
	for sent := int64(0); sent < length; {
		_ = control.SetWriteDeadline(time.Now().Add(sendWait)) // the error of a writer without deadlines does not matter
		// Pass the file itself to the connection, so that it can use sendfile.
		n, err := io.CopyN(w, f, min(sendStep, length-sent))
		served.Add(n)
		if err != nil {
			return
		}
		sent += n
	}
}

// parseNumber parses a non-negative number in its shortest decimal form.
func parseNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || strconv.Itoa(n) != s {
		return 0, fmt.Errorf("not a number: %q", s)
	}
	return n, nil
}

// parseRange parses a Range header for size bytes. As HTTP allows, it ignores all but a
// single range of bytes, and the response then has all bytes. If ok is false, the range has
// no bytes.
func parseRange(header string, size int64) (start, length int64, ranged, ok bool) {
	spec, isBytes := strings.CutPrefix(header, "bytes=")
	from, to, isRange := strings.Cut(spec, "-")
	if !isBytes || !isRange {
		return 0, size, false, true
	}
	first, errFirst := strconv.ParseUint(from, 10, 63)
	last, errLast := strconv.ParseUint(to, 10, 63)
	switch {
	case from == "" && errLast == nil: // the last bytes; last is their number
		length = min(int64(last), size)
		return size - length, length, true, length > 0
	case errFirst != nil || to != "" && (errLast != nil || last < first):
		return 0, size, false, true
	case int64(first) >= size:
		return 0, 0, true, false
	case to == "":
		return int64(first), size - int64(first), true, true
	}
	return int64(first), min(int64(last), size-1) - int64(first) + 1, true, true
}
