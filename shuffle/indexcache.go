package shuffle

import (
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// maxCachedEntries limits the entries of all indexes in an indexCache: 8 MiB.
const maxCachedEntries = 256 << 10

// indexCache keeps the indexes of the segment files that were opened last. All homes of a job fetch from an output when
// its map has ended, so its index is read and checked once, not for each partition. Any goroutine may use an indexCache.
type indexCache struct {
	mu      sync.Mutex
	indexes map[string]cachedIndex // by file
	files   []string               // the oldest first
	entries int
}

type cachedIndex struct {
	info  fs.FileInfo
	index *Index
}

func newIndexCache() *indexCache { return &indexCache{indexes: make(map[string]cachedIndex)} }

// read returns the index of an open segment file.
func (c *indexCache) read(f *os.File) (*Index, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	c.mu.Lock()
	found, ok := c.indexes[f.Name()]
	c.mu.Unlock()
	if ok && os.SameFile(found.info, info) && found.info.Size() == info.Size() && found.info.ModTime().Equal(info.ModTime()) {
		return found.index, nil
	}
	index, err := readIndexOf(f, info.Size())
	if err == nil {
		c.put(f.Name(), cachedIndex{info, index})
	}
	return index, err
}

func (c *indexCache) put(file string, x cachedIndex) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.indexes[file]; ok {
		c.entries -= len(old.index.Partitions)
	} else {
		c.files = append(c.files, file)
	}
	c.indexes[file] = x
	c.entries += len(x.index.Partitions)
	for c.entries > maxCachedEntries {
		oldest := c.files[0]
		c.files = c.files[1:]
		c.entries -= len(c.indexes[oldest].index.Partitions)
		delete(c.indexes, oldest)
	}
}
