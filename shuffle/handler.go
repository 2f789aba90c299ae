package shuffle

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// pathPrefix is the first element of every path that Handler serves.
const pathPrefix = "/shuffle/"

// Headers with which Handler tells a partition's index entry.
const (
	headerRecords = "Quern-Records"
	headerDigest  = "Quern-Digest"  // 16 hexadecimal digits
	headerCorrupt = "Quern-Corrupt" // set when the segment file's index is damaged
)

// URL is where Handler serves a partition of a map output. The base is the
// server's: scheme, host and port.
func URL(base string, job wire.JobID, m, attempt, partition int) string {
	return fmt.Sprintf("%s%s%v/%d/%d/%d", base, pathPrefix, job, m, attempt, partition)
}

// Handler serves partitions of local segment files at
//
//	/shuffle/<job>/<map>/<attempt>/<partition>
//
// by GET, with single ranges, and HEAD. The body is the partition's blocks. On a
// plain TCP connection it goes from the file to the socket by sendfile. Whether a
// request may have what it asks for is for the caller to see to, before. The
// callback resolve finds a map output's file; fs.ErrNotExist is answered 404.
// It is called by several goroutines at once.
func Handler(resolve func(job wire.JobID, m, attempt int) (file string, err error)) http.Handler {
	mux := http.NewServeMux()
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
			err = servePartition(w, r, file, partition)
		}
		if err != nil {
			refuse(w, err)
		}
	})
	return mux
}

// refuse answers with an error, before anything else was answered.
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

// servePartition answers with a partition's bytes. It returns an error only
// while nothing was answered yet; a client notices when the body ends early.
func servePartition(w http.ResponseWriter, r *http.Request, file string, partition int) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	index, err := readIndex(f)
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
		http.Error(w, "range begins behind the end", http.StatusRequestedRangeNotSatisfiable)
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
		send(w, f, length)
	}
	return nil
}

// A peer may take that long for that much; one that hangs must not keep a
// connection and a file for ever.
const (
	sendWait = time.Minute
	sendStep = 4 << 20
)

// send sends the next bytes of a file, as far as the peer takes them.
func send(w http.ResponseWriter, f *os.File, length int64) {
	control := http.NewResponseController(w)
	for sent := int64(0); sent < length; {
		_ = control.SetWriteDeadline(time.Now().Add(sendWait)) // a writer that knows none does without
		// The file itself has to reach the connection, for sendfile.
		n, err := io.CopyN(w, f, min(sendStep, length-sent))
		if err != nil {
			return
		}
		sent += n
	}
}

// parseNumber reads a number that is not negative and written in the one way
// that numbers are.
func parseNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || strconv.Itoa(n) != s {
		return 0, fmt.Errorf("not a number: %q", s)
	}
	return n, nil
}

// parseRange reads a Range header for something of size bytes. What is no single
// range of bytes is ignored, as HTTP allows: the answer is the whole. It is not
// ok when no byte is in the range.
func parseRange(header string, size int64) (start, length int64, ranged, ok bool) {
	spec, isBytes := strings.CutPrefix(header, "bytes=")
	from, to, isRange := strings.Cut(spec, "-")
	if !isBytes || !isRange {
		return 0, size, false, true
	}
	first, errFirst := strconv.ParseUint(from, 10, 63)
	last, errLast := strconv.ParseUint(to, 10, 63)
	switch {
	case from == "" && errLast == nil: // the last so many bytes
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
